//! What a program can ask of the library itself, under a name that the C library does not have. Tests do: they wait until a connection is carried by windows.

use core::ffi::c_int;

use crate::process;

/// 1 where windows carry both directions of this connection; 0 where the kernel carries one, and where the number is none of a connection.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn beeline_sockets_is_accelerated(number: c_int) -> c_int {
    if let Some(socket) = process::known(number).and_then(|known| known.sockets.datagram_socket(number)) {
        return c_int::from(socket.is_carried());
    }
    let endpoint = process::known(number).and_then(|known| known.sockets.endpoint(number));
    let is_accelerated = endpoint.is_some_and(|endpoint| {
        let traffic = endpoint.traffic();
        traffic.ups > traffic.downs && traffic.received_by_window_bytes > 0
    });
    c_int::from(is_accelerated)
}
