//! The functions that the library replaces by code of its own.
//!
//! A row is: names under which programs know it, parameters, the module of `hooks/` that has what programs come to, under the first name, and the system call that does the same.
//! That is made where a hook is entered before the constructor of the library ran (constructors of other libraries come first), or where no library behind this one has the
//! function. `real.rs` makes of the list what stands behind the hooks, `exports.rs` what programs see. Functions that are only prepared for, and then run as they are, are in
//! `prepared.rs`.

/// Gives the list to another macro.
macro_rules! calls {
    ($then:ident) => {
        $then! {
            read, __read(number: c_int, out: *mut c_void, bytes: size_t) -> ssize_t = receive,
                read(number, out, bytes);
            readv(number: c_int, vectors: *const iovec, count: c_int) -> ssize_t = receive,
                readv(number, vectors, count);
            recv, __recv(number: c_int, out: *mut c_void, bytes: size_t, flags: c_int) -> ssize_t = receive,
                recvfrom(number, out, bytes, flags, 0, 0);
            recvfrom(
                number: c_int, out: *mut c_void, bytes: size_t, flags: c_int, address: *mut sockaddr, length: *mut socklen_t
            ) -> ssize_t = receive,
                recvfrom(number, out, bytes, flags, address, length);
            recvmsg(number: c_int, message: *mut msghdr, flags: c_int) -> ssize_t = receive,
                recvmsg(number, message, flags);
            recvmmsg(
                number: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec
            ) -> c_int = receive,
                recvmmsg(number, messages, count, flags, timeout);
            __read_chk(number: c_int, out: *mut c_void, bytes: size_t, room: size_t) -> ssize_t = receive,
                read(number, out, bytes);
            __recv_chk(number: c_int, out: *mut c_void, bytes: size_t, room: size_t, flags: c_int) -> ssize_t = receive,
                recvfrom(number, out, bytes, flags, 0, 0);
            __recvfrom_chk(
                number: c_int, out: *mut c_void, bytes: size_t, room: size_t, flags: c_int,
                address: *mut sockaddr, length: *mut socklen_t
            ) -> ssize_t = receive,
                recvfrom(number, out, bytes, flags, address, length);

            write, __write(number: c_int, from: *const c_void, bytes: size_t) -> ssize_t = send,
                write(number, from, bytes);
            writev(number: c_int, vectors: *const iovec, count: c_int) -> ssize_t = send,
                writev(number, vectors, count);
            send, __send(number: c_int, from: *const c_void, bytes: size_t, flags: c_int) -> ssize_t = send,
                sendto(number, from, bytes, flags, 0, 0);
            sendto(
                number: c_int, from: *const c_void, bytes: size_t, flags: c_int, address: *const sockaddr, length: socklen_t
            ) -> ssize_t = send,
                sendto(number, from, bytes, flags, address, length);
            sendmsg(number: c_int, message: *const msghdr, flags: c_int) -> ssize_t = send,
                sendmsg(number, message, flags);
            sendmmsg, __sendmmsg(number: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int = send,
                sendmmsg(number, messages, count, flags);

            sendfile, sendfile64(to: c_int, from: c_int, offset: *mut off_t, bytes: size_t) -> ssize_t = files,
                sendfile(to, from, offset, bytes);
            splice(
                from: c_int, from_offset: *mut off_t, to: c_int, to_offset: *mut off_t, bytes: size_t, flags: c_uint
            ) -> ssize_t = files,
                splice(from, from_offset, to, to_offset, bytes, flags);

            socket, __socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int = opened,
                socket(domain, kind, protocol);
            bind(number: c_int, address: *const sockaddr, length: socklen_t) -> c_int = opened,
                bind(number, address, length);
            connect, __connect(number: c_int, address: *const sockaddr, length: socklen_t) -> c_int = opened,
                connect(number, address, length);
            accept(number: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int = opened,
                accept4(number, address, length, 0);
            accept4(number: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int = opened,
                accept4(number, address, length, flags);

            close, __close(number: c_int) -> c_int = numbers,
                close(number);
            close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int = numbers,
                close_range(first, last, flags);
            dup(number: c_int) -> c_int = numbers,
                dup(number);
            dup2, __dup2(number: c_int, to: c_int) -> c_int = numbers,
                dup3(number, to, 0);
            dup3(number: c_int, to: c_int, flags: c_int) -> c_int = numbers,
                dup3(number, to, flags);
            // Programs give a third argument or none; on the machines of this library one that is there is where a long would be.
            fcntl, __fcntl(number: c_int, command: c_int, argument: c_long) -> c_int = numbers,
                fcntl(number, command, argument);
            fcntl64, __libc_fcntl64(number: c_int, command: c_int, argument: c_long) -> c_int = numbers,
                fcntl(number, command, argument);

            _Fork() -> c_int = programs,
                clone(libc::SIGCHLD, 0, 0, 0, 0);

            epoll_create(size: c_int) -> c_int = sets,
                epoll_create1(size & 0);
            epoll_create1(flags: c_int) -> c_int = sets,
                epoll_create1(flags);
            epoll_ctl(number: c_int, operation: c_int, member: c_int, event: *mut epoll_event) -> c_int = sets,
                epoll_ctl(number, operation, member, event);
            epoll_wait(number: c_int, events: *mut epoll_event, most: c_int, timeout: c_int) -> c_int = sets,
                epoll_pwait(number, events, most, timeout, 0, 8);
            epoll_pwait(
                number: c_int, events: *mut epoll_event, most: c_int, timeout: c_int, mask: *const sigset_t
            ) -> c_int = sets,
                epoll_pwait(number, events, most, timeout, mask, 8);
            epoll_pwait2(
                number: c_int, events: *mut epoll_event, most: c_int, timeout: *const timespec, mask: *const sigset_t
            ) -> c_int = sets,
                epoll_pwait2(number, events, most, timeout, mask, 8);
            poll, __poll(list: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int = polls,
                ppoll(list, count, kernel::time_of(timeout), 0, 8);
            __poll_chk(list: *mut pollfd, count: nfds_t, timeout: c_int, room: size_t) -> c_int = polls,
                ppoll(list, count, kernel::time_of(timeout), 0, 8);
            ppoll(list: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int = polls,
                ppoll(list, count, timeout, mask, 8);
            __ppoll_chk(
                list: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t, room: size_t
            ) -> c_int = polls,
                ppoll(list, count, timeout, mask, 8);
            select, __select(
                count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *mut timeval
            ) -> c_int = polls,
                pselect6(count, read, write, except, kernel::time_at(timeout), 0);
            // The mask is of no use before the program's first handler.
            pselect(
                count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set,
                timeout: *const timespec, mask: *const sigset_t
            ) -> c_int = polls,
                pselect6(count, read, write, except, timeout, 0);

            shutdown(number: c_int, how: c_int) -> c_int = options,
                shutdown(number, how);
            setsockopt(
                number: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t
            ) -> c_int = options,
                setsockopt(number, level, name, value, length);
            getsockopt(
                number: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t
            ) -> c_int = options,
                getsockopt(number, level, name, value, length);
            // It has no place for the answer before the real function is found, and fails.
            sockatmark(number: c_int) -> c_int = options,
                ioctl(number, 0x8905, 0);
            ioctl(number: c_int, request: c_long, argument: *mut c_void) -> c_int = options,
                ioctl(number, request, argument);
        }
    };
}

pub(crate) use calls;
