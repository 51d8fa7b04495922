//! gRPC (tonic) over a Unix socket: unary calls whose messages are plain bytes, one runtime of one thread a side, one
//! connection that stays.
//!
//! There is no protobuf in it: the codec hands bytes through, which favours it. The server's runtime has a thread of
//! its own, because an answer leaves after its handler has returned; it waits in epoll between calls and costs nothing
//! while others are measured.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use beeline_bench_echo::{EchoClient, EchoServer, Failure};
use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, UnaryService};
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, Request, Response, Status};
use tower::{Service, service_fn};

const METHOD: &str = "/echo.Echo/Echo";
/// Name of the socket in the server's folder.
const SOCKET: &str = "grpc";

fn runtime() -> Result<Runtime, Failure> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Bytes as they are.
#[derive(Clone, Copy, Debug, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// The method: gives the request back.
#[derive(Clone, Copy, Debug)]
struct Echo;

impl UnaryService<Bytes> for Echo {
    type Response = Bytes;
    type Future = Ready<Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        ready(Ok(Response::new(request.into_inner())))
    }
}

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let method = *self;
        Box::pin(async move {
            if request.uri().path() != METHOD {
                return Ok(Status::new(Code::Unimplemented, request.uri().path()).into_http());
            }
            Ok(Grpc::new(Raw).unary(method, request).await)
        })
    }
}

/// The side that answers.
pub(crate) struct Server {
    folder: TempDir,
}

impl Server {
    /// Starts the thread that answers.
    pub(crate) fn start() -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let runtime = runtime()?;
        let listener = {
            let _inside = runtime.enter();
            UnixListener::bind(folder.path().join(SOCKET))?
        };
        thread::Builder::new().name("grpc".to_owned()).spawn(move || {
            let serving = tonic::transport::Server::builder()
                .serve_with_incoming(Echo, UnixListenerStream::new(listener));
            if let Err(error) = runtime.block_on(serving) {
                eprintln!("the gRPC server ended: {error}");
            }
        })?;
        Ok(Server { folder })
    }

    /// Returns the address that a client connects to.
    pub(crate) fn address(&self) -> String {
        self.folder.path().join(SOCKET).to_string_lossy().into_owned()
    }
}

impl EchoServer for Server {
    fn begin(&mut self, _: usize) -> Result<(), Failure> {
        Ok(())
    }

    fn serve(&mut self, _: u64) -> Result<(), Failure> {
        Ok(())
    }
}

/// The side that asks.
pub(crate) struct Client {
    runtime: Runtime,
    calls: tonic::client::Grpc<Channel>,
}

impl Client {
    pub(crate) fn connect(address: &str) -> Result<Self, Failure> {
        let (runtime, address) = (runtime()?, address.to_owned());
        let connector = service_fn(move |_: Uri| {
            let address = address.clone();
            async move { UnixStream::connect(address).await.map(TokioIo::new) }
        });
        // The address of the endpoint is only what the requests name as their host.
        let endpoint = Endpoint::from_static("http://localhost");
        let channel = runtime.block_on(endpoint.connect_with_connector(connector))?;
        Ok(Client { runtime, calls: tonic::client::Grpc::new(channel) })
    }
}

impl EchoClient for Client {
    fn begin(&mut self, _: usize) -> Result<(), Failure> {
        Ok(())
    }

    fn trip(&mut self, request: &[u8], answer: &mut [u8]) -> Result<(), Failure> {
        let calls = &mut self.calls;
        let request = Request::new(Bytes::copy_from_slice(request));
        let response = self.runtime.block_on(async {
            calls.ready().await?;
            let method = PathAndQuery::from_static(METHOD);
            calls.unary::<Bytes, Bytes, _>(request, method, Raw).await.map_err(Failure::from)
        })?;
        let bytes = response.into_inner();
        if bytes.len() != answer.len() {
            return Err(format!("an answer of {} bytes to a request of {}", bytes.len(), answer.len()).into());
        }
        answer.copy_from_slice(&bytes);
        Ok(())
    }
}
