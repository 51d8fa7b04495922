//! iceoryx2 request-response in shared memory: both sides polling, requests and responses written into loaned memory
//! and read where they lie, the next request loaned before the wait for the response, as its own benchmark does it.
//!
//! A service has one type, so each size has a service of its own, of arrays, which need no length. Everything that
//! iceoryx2 makes lies in a folder of this run or has its name, so that nothing is left when the server ends.

use std::fs;
use std::hint::spin_loop;
use std::path::Path;

use beeline_bench_echo::{EchoClient, EchoServer, Failure};
use iceoryx2::node::Node;
use iceoryx2::port::client::Client as Port;
use iceoryx2::port::server::Server as ServerPort;
use iceoryx2::prelude::*;
use iceoryx2::request_mut_uninit::RequestMutUninit;
use iceoryx2::service::port_factory::request_response::PortFactory;
use tempfile::TempDir;

type Service<const N: usize> = PortFactory<ipc::Service, [u8; N], (), [u8; N], ()>;

/// Folder in which shared memory has its names.
const SHARED_MEMORY: &str = "/dev/shm";

/// The node of a side, with everything that it makes under `folder`, or in shared memory under the folder's name.
fn node(folder: &Path) -> Result<Node<ipc::Service>, Failure> {
    set_log_level(LogLevel::Error);
    let odd = |error: &dyn std::fmt::Debug| format!("the folder {}: {error:?}", folder.display());
    let mut config = Config::default();
    config.global.prefix = prefix(folder).as_str().try_into().map_err(|e| odd(&e))?;
    config.global.set_root_path(&folder.to_string_lossy().as_ref().try_into().map_err(|e| odd(&e))?);
    Ok(NodeBuilder::new().config(&config).create()?)
}

/// Prefix of the names of all shared memory that belongs to `folder`.
fn prefix(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// One client with one request under way and the next one loaned; queues no longer than that takes.
fn service<const N: usize>(node: &Node<ipc::Service>) -> Result<Service<N>, Failure> {
    let service = node
        .service_builder(&format!("echo/{N}").as_str().try_into()?)
        .request_response::<[u8; N], [u8; N]>()
        .max_clients(1)
        .max_servers(1)
        .max_nodes(2)
        .max_active_requests_per_client(1)
        .max_loaned_requests(2)
        .max_response_buffer_size(1)
        .max_borrowed_responses_per_pending_response(1)
        .enable_fire_and_forget_requests(false)
        .open_or_create()?;
    Ok(service)
}

/// The folder of a run. Dropping it removes what iceoryx2 leaves for a next node, which never comes.
struct RunFolder(TempDir);

impl Drop for RunFolder {
    fn drop(&mut self) {
        let prefix = prefix(self.0.path());
        for entry in fs::read_dir(SHARED_MEMORY).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                // Somebody else may have removed it: it is gone either way.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// The side that answers. Ports go before their node, and the folder last.
pub(crate) struct Server {
    /// Of the size that was asked for last.
    ports: Option<Box<dyn Serve>>,
    node: Node<ipc::Service>,
    folder: RunFolder,
}

impl Server {
    pub(crate) fn new() -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("beeline_bench_").tempdir()?;
        Ok(Server { ports: None, node: node(folder.path())?, folder: RunFolder(folder) })
    }

    /// Returns the address that a client connects to.
    pub(crate) fn address(&self) -> String {
        self.folder.0.path().to_string_lossy().into_owned()
    }
}

impl EchoServer for Server {
    fn begin(&mut self, bytes: usize) -> Result<(), Failure> {
        self.ports = None;
        self.ports = Some(match bytes {
            10 => Box::new(Serving::<10>::open(&self.node)?),
            32 => Box::new(Serving::<32>::open(&self.node)?),
            100 => Box::new(Serving::<100>::open(&self.node)?),
            _ => return Err(format!("no service for {bytes} bytes: 10, 32, 100").into()),
        });
        Ok(())
    }

    fn serve(&mut self, trips: u64) -> Result<(), Failure> {
        self.ports.as_mut().ok_or("nothing was begun")?.serve(trips)
    }
}

/// The part of a server that knows the size.
trait Serve {
    fn serve(&mut self, trips: u64) -> Result<(), Failure>;
}

struct Serving<const N: usize> {
    port: ServerPort<ipc::Service, [u8; N], (), [u8; N], ()>,
    _service: Service<N>,
}

impl<const N: usize> Serving<N> {
    fn open(node: &Node<ipc::Service>) -> Result<Self, Failure> {
        let service = service::<N>(node)?;
        Ok(Serving {
            port: service.server_builder().max_loaned_responses_per_request(1).create()?,
            _service: service,
        })
    }
}

impl<const N: usize> Serve for Serving<N> {
    fn serve(&mut self, trips: u64) -> Result<(), Failure> {
        let mut left = trips;
        while left > 0 {
            let Some(request) = self.port.receive()? else {
                spin_loop();
                continue;
            };
            request.loan_uninit()?.write_payload(*request.payload()).send()?;
            left -= 1;
        }
        Ok(())
    }
}

/// The side that asks.
pub(crate) struct Client {
    /// Of the size that was asked for last. Before the node: it goes first.
    ports: Option<Box<dyn EchoClient>>,
    node: Node<ipc::Service>,
}

impl Client {
    pub(crate) fn new(address: &str) -> Result<Self, Failure> {
        Ok(Client { ports: None, node: node(Path::new(address))? })
    }
}

impl EchoClient for Client {
    fn begin(&mut self, bytes: usize) -> Result<(), Failure> {
        self.ports = None;
        self.ports = Some(match bytes {
            10 => Box::new(Asking::<10>::open(&self.node)?),
            32 => Box::new(Asking::<32>::open(&self.node)?),
            100 => Box::new(Asking::<100>::open(&self.node)?),
            _ => return Err(format!("no service for {bytes} bytes: 10, 32, 100").into()),
        });
        Ok(())
    }

    #[inline]
    fn trip(&mut self, request: &[u8], answer: &mut [u8]) -> Result<(), Failure> {
        self.ports.as_mut().ok_or("nothing was begun")?.trip(request, answer)
    }
}

struct Asking<const N: usize> {
    /// Memory of the next request. Before the port that it is of.
    loaned: Option<RequestMutUninit<ipc::Service, std::mem::MaybeUninit<[u8; N]>, (), [u8; N], ()>>,
    port: Port<ipc::Service, [u8; N], (), [u8; N], ()>,
    _service: Service<N>,
}

impl<const N: usize> Asking<N> {
    fn open(node: &Node<ipc::Service>) -> Result<Self, Failure> {
        let service = service::<N>(node)?;
        let port = service.client_builder().create()?;
        Ok(Asking { loaned: Some(port.loan_uninit()?), port, _service: service })
    }
}

impl<const N: usize> EchoClient for Asking<N> {
    fn begin(&mut self, _: usize) -> Result<(), Failure> {
        Ok(())
    }

    fn trip(&mut self, request: &[u8], answer: &mut [u8]) -> Result<(), Failure> {
        let loaned = match self.loaned.take() {
            Some(loaned) => loaned,
            None => self.port.loan_uninit()?,
        };
        let pending = loaned.write_payload(*request.first_chunk().ok_or("a short request")?).send()?;
        self.loaned = Some(self.port.loan_uninit()?);
        loop {
            if let Some(response) = pending.receive()? {
                answer.copy_from_slice(response.payload());
                return Ok(());
            }
            spin_loop();
        }
    }
}
