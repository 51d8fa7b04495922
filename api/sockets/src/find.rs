//! Functions that the next library has under a name of ours: most often the C library, or another one that is preloaded.

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::errno;

/// A function that stands behind one of ours.
pub struct Real {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Real {
    /// The function of this name; it is not looked for yet.
    pub const fn new(name: &'static CStr) -> Self {
        Real { name, address: AtomicPtr::new(null_mut()) }
    }

    /// Its address; null before [`Real::find`], and if there is none.
    #[inline]
    pub fn address(&self) -> *mut c_void {
        // Relaxed: code does not change, and every thread would find the same.
        self.address.load(Ordering::Relaxed)
    }

    /// Looks for it; its address, null if there is none. Takes the lock of the dynamic linker.
    #[cold]
    pub fn find(&self) -> *mut c_void {
        errno::preserved(|| {
            // SAFETY: `name` is a string of C.
            let address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            self.address.store(address, Ordering::Relaxed);
            address
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_that_is_nowhere_has_no_address_and_leaves_errno_alone() {
        let real = Real::new(c"beeline_no_such_function");
        beeline_ffi::set_errno(77);
        assert!(real.find().is_null());
        assert!(real.address().is_null());
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(77));
    }

    #[test]
    fn function_of_the_c_library_has_an_address() {
        let real = Real::new(c"getpid");
        assert!(real.address().is_null());
        let address = real.find();
        assert!(!address.is_null());
        assert_eq!(real.address(), address);
    }
}
