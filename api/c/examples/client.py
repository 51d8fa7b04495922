# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One call of examples/server.c from Python. Usage: client.py NAME ROOT [LIBRARY]."""
import ctypes
import sys

beeline = ctypes.CDLL(sys.argv[3] if len(sys.argv) > 3 else "libbeeline.so.0")
beeline.beeline_rpc_last_error.restype = ctypes.c_char_p
call = beeline.beeline_rpc_call
call.argtypes = [ctypes.c_void_p, ctypes.c_uint16, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
call.argtypes += [ctypes.POINTER(ctypes.c_size_t), ctypes.c_uint64]


def check(status: int) -> None:
    """Raises what the library says went wrong."""
    if status < 0:
        raise OSError(beeline.beeline_rpc_last_error().decode())


domain, client = ctypes.c_void_p(), ctypes.c_void_p()
check(beeline.beeline_rpc_domain_open(b"default", sys.argv[2].encode(), ctypes.byref(domain)))
check(beeline.beeline_rpc_client_connect(domain, sys.argv[1].encode(), None, ctypes.byref(client)))
request, length = (40).to_bytes(8, "little") + (2).to_bytes(8, "little"), ctypes.c_size_t()
buffer = ctypes.create_string_buffer(8)
check(call(client, 1, request, len(request), buffer, len(buffer), ctypes.byref(length), 1_000_000_000))
print(f"40 + 2 = {int.from_bytes(buffer.raw[: length.value], 'little')}")
