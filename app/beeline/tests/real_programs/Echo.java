import java.io.DataInputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.CRC32;

/** An echo: the server by a selector, the clients by threads that wait. */
public class Echo {
    public static void main(String[] words) throws Exception {
        int port = Integer.parseInt(words[1]);
        if (words[0].equals("server")) serve(port); else ask(port);
    }

    static void serve(int port) throws Exception {
        Selector selector = Selector.open();
        ServerSocketChannel listener = ServerSocketChannel.open();
        listener.bind(new InetSocketAddress("127.0.0.1", port)).configureBlocking(false);
        listener.register(selector, SelectionKey.OP_ACCEPT);
        ByteBuffer bytes = ByteBuffer.allocateDirect(1 << 16);
        while (true) {
            selector.select();
            for (SelectionKey key : selector.selectedKeys()) {
                if (key.isAcceptable()) {
                    SocketChannel peer = listener.accept();
                    peer.configureBlocking(false).register(selector, SelectionKey.OP_READ);
                    continue;
                }
                SocketChannel peer = (SocketChannel) key.channel();
                bytes.clear();
                if (peer.read(bytes) < 0) {
                    peer.close();
                    continue;
                }
                bytes.flip();
                while (bytes.hasRemaining()) peer.write(bytes);
            }
            selector.selectedKeys().clear();
        }
    }

    static void ask(int port) throws Exception {
        AtomicLong sum = new AtomicLong();
        Thread[] threads = new Thread[6];
        for (int number = 0; number < threads.length; number++) {
            int seed = number;
            threads[number] = new Thread(() -> {
                try (Socket peer = new Socket("127.0.0.1", port)) {
                    peer.setSoTimeout(30_000);
                    OutputStream out = peer.getOutputStream();
                    DataInputStream in = new DataInputStream(peer.getInputStream());
                    CRC32 crc = new CRC32();
                    for (int turn = 0; turn < 400; turn++) {
                        byte[] sent = new byte[1 + turn * turn * 31 % 20_000];
                        for (int at = 0; at < sent.length; at++) sent[at] = (byte) (at * 7 + turn + seed);
                        out.write(sent);
                        byte[] got = new byte[sent.length];
                        in.readFully(got);
                        crc.update(got);
                    }
                    sum.addAndGet(crc.getValue());
                } catch (Exception error) {
                    error.printStackTrace();
                    System.exit(1);
                }
            });
            threads[number].start();
        }
        for (Thread thread : threads) thread.join();
        System.out.println("sum " + sum);
    }
}
