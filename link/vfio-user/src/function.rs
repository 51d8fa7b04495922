//! A function: its socket, and the thread that serves whoever connects to it.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use beeline_contract_device::Device;
use beeline_link_shm::{DeviceLayout, DevicePort, PortConfig};
use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::FunctionError;
use crate::host::FunctionHost;
use crate::layout::FunctionLayout;
use crate::orders::MOST_WAITING;
use crate::serving::Serving;
use crate::socket::{Ended, Socket, wait};
use crate::windows::Windows;

/// How long a client waits to be taken when the system has nothing to take it with.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A device as a PCI function: what serves it. Its other half is the port that [`Function::open`] gives with it.
///
/// Dropping it removes the socket from the file system.
pub struct Function {
    listener: OwnedFd,
    path: PathBuf,
    stop: Arc<OwnedFd>,
    serving: Serving,
}

/// Ends [`Function::serve`], from any thread.
#[derive(Clone, Debug)]
pub struct FunctionStop(Arc<OwnedFd>);

impl FunctionStop {
    /// Has `serve` return soon. What it waits for the port's loop to do it waits for still, or until that is dropped.
    pub fn stop(&self) {
        // It fails only when the count is full, and then it is readable.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl Function {
    /// Makes a function of a device that has just been made, and listens for clients at `path`, which only this user can connect
    /// to. `wake` is called when there is something for the port's loop to do besides what it finds in the windows.
    ///
    /// # Errors
    /// [`FunctionError`].
    pub fn open<D: Device>(
        device: D,
        config: &PortConfig,
        path: &Path,
        wake: impl Fn() + Send + 'static,
    ) -> Result<(Function, DevicePort<D, FunctionHost>), FunctionError> {
        let stop = Arc::new(stop_event()?);
        let (serving, port) = assemble(device, config, Arc::clone(&stop), wake)?;
        let listener = listen(path)?;
        Ok((Function { listener, path: path.to_owned(), stop, serving }, port))
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What ends [`Function::serve`].
    pub fn stop(&self) -> FunctionStop {
        FunctionStop(Arc::clone(&self.stop))
    }

    /// Serves one client after the other, until it is stopped or the port is dropped. When a client goes, the function is reset and
    /// forgets its memory.
    pub fn serve(&mut self) {
        loop {
            if wait(self.listener.as_fd(), PollFlags::IN, Some(&self.stop)).is_err() {
                return;
            }
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let client = match rustix::net::accept_with(&self.listener, flags) {
                Ok(client) => client,
                // It went before it was taken.
                Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => continue,
                // No descriptor or memory is left, now.
                Err(errno) => {
                    tracing::warn!("a client of {} waits: {errno}", self.path.display());
                    if self.serving.is_stopped(ACCEPT_PAUSE) {
                        return;
                    }
                    continue;
                }
            };
            tracing::info!("a client of {}", self.path.display());
            match self.serving.client(&Socket::new(client, Some(Arc::clone(&self.stop)))) {
                Ok(()) | Err(Ended::Closed) => tracing::info!("the client of {} went", self.path.display()),
                Err(error) => tracing::warn!("the client of {} is let go: {error}", self.path.display()),
            }
            if !self.serving.forget() {
                return;
            }
        }
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        // A path that somebody else has taken meanwhile would be theirs, but then this socket was removed by somebody.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What is signalled to end serving.
pub(crate) fn stop_event() -> Result<OwnedFd, FunctionError> {
    let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    event.map_err(|errno| FunctionError::System { what: "make an event", errno })
}

/// The two halves of a function: what serves clients, and the port.
pub(crate) fn assemble<D: Device>(
    mut device: D,
    config: &PortConfig,
    stop: Arc<OwnedFd>,
    wake: impl Fn() + Send + 'static,
) -> Result<(Serving, DevicePort<D, FunctionHost>), FunctionError> {
    let device_layout = DeviceLayout::read(&mut device)?;
    let layout = FunctionLayout::of(&device_layout)?;
    let windows = Windows::make(&device_layout, layout.window_bytes, config.memory)?;
    let (orders, taken) = sync_channel(MOST_WAITING);
    let host = FunctionHost::new(taken, layout.vectors);
    let port = DevicePort::with_host(device, host, &device_layout, config, windows.for_the_loop()?);
    Ok((Serving::new(layout, windows, orders, stop, Box::new(wake)), port))
}

/// Listens at a path, for this user alone.
fn listen(path: &Path) -> Result<OwnedFd, FunctionError> {
    let refused = |why: String, remedy| FunctionError::Socket { path: path.to_owned(), why, remedy };
    let address = SocketAddrUnix::new(path)
        .map_err(|errno| refused(errno.to_string(), "choose a path of at most 107 bytes"))?;
    let system = |what| move |errno| FunctionError::System { what, errno };
    let socket = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
    };
    let listener = socket().map_err(system("make a socket"))?;
    // Before it has a name: the name is made with these permissions, whatever the mask says.
    rustix::fs::fchmod(&listener, Mode::RUSR | Mode::WUSR).map_err(system("set a socket's permissions"))?;
    let bound = match rustix::net::bind(&listener, &address) {
        // Of a server that was killed the name is left, and nobody answers there.
        Err(Errno::ADDRINUSE)
            if is_left_over(&socket().map_err(system("make a socket"))?, path, &address) =>
        {
            let _ = std::fs::remove_file(path);
            rustix::net::bind(&listener, &address)
        }
        bound => bound,
    };
    bound.map_err(|errno| {
        let remedy = match errno {
            Errno::ADDRINUSE => "stop who listens there, or choose another path",
            Errno::NOENT | Errno::NOTDIR => "make its folder first",
            Errno::ACCESS | Errno::ROFS => "choose a folder in which this user may make files",
            _ => "choose another path",
        };
        refused(errno.to_string(), remedy)
    })?;
    rustix::net::listen(&listener, 1).map_err(system("listen"))?;
    Ok(listener)
}

/// Whether a path is a socket behind which nobody listens.
fn is_left_over(probe: &OwnedFd, path: &Path, address: &SocketAddrUnix) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    is_socket && rustix::net::connect(probe, address) == Err(Errno::CONNREFUSED)
}
