//! Ends of connections as they are listed, in words.

use std::net::SocketAddr;

/// An end as people know it: its address, or of a stream of `AF_UNIX`, which has none of its own, the inode of its socket, as `ss` shows it.
pub fn end_name(end: SocketAddr) -> String {
    beeline_tcp::unix_inode(end).map_or_else(|| end.to_string(), |inode| format!("unix:{inode}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use beeline_domain::ConnectionEnds;

    use super::*;

    #[test]
    fn end_without_an_address_is_called_by_its_inode() {
        let (one, other) = UnixStream::pair().unwrap();
        let ends = ConnectionEnds::of_unix(&one).unwrap();
        let inode = |socket| rustix::fs::fstat(socket).unwrap().st_ino;
        assert_eq!(end_name(ends.local()), format!("unix:{}", inode(&one)));
        assert_eq!(end_name(ends.remote()), format!("unix:{}", inode(&other)));
        assert_eq!(end_name("127.0.0.1:80".parse().unwrap()), "127.0.0.1:80");
    }
}
