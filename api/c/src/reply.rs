//! Answering a request, in its handler.

use core::ffi::c_int;

use beeline_ffi::{Bytes, Failure, Handle, edge};
use beeline_rpc::Reply;

use crate::exchange::{REQUESTS, State, beeline_rpc_request};
use crate::status::OK;

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_reply_send(
    request: Handle<beeline_rpc_request>,
    answer: Bytes<'_>,
    length: usize,
) -> c_int {
    edge("beeline_rpc_reply_send", || {
        let exchange = &mut *REQUESTS.enter_own(request)?;
        let exchange = exchange.running()?;
        let answer = answer.read(length, "answer")?;
        exchange.answer(|reply| reply.send(answer))
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_reply_fail(
    request: Handle<beeline_rpc_request>,
    code: u16,
    detail: Bytes<'_>,
    length: usize,
) -> c_int {
    edge("beeline_rpc_reply_fail", || {
        let exchange = &mut *REQUESTS.enter_own(request)?;
        let exchange = exchange.running()?;
        let detail = detail.read(length, "detail")?;
        exchange.answer(|reply| reply.fail(code, detail))
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_reply_overloaded(request: Handle<beeline_rpc_request>) -> c_int {
    edge("beeline_rpc_reply_overloaded", || REQUESTS.enter_own(request)?.running()?.answer(Reply::overloaded))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_reply_unknown_method(request: Handle<beeline_rpc_request>) -> c_int {
    edge("beeline_rpc_reply_unknown_method", || {
        REQUESTS.enter_own(request)?.running()?.answer(Reply::unknown_method)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_reply_begin(request: Handle<beeline_rpc_request>, max_length: usize) -> c_int {
    edge("beeline_rpc_reply_begin", || {
        let exchange = &mut *REQUESTS.enter_own(request)?;
        let exchange = exchange.running()?;
        match core::mem::replace(&mut exchange.reply, State::Moving) {
            State::Open(reply) => {
                exchange.reply = State::Writing(reply.begin(max_length));
                Ok(OK)
            }
            other => {
                exchange.reply = other;
                Err(exchange.not_open())
            }
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_reply_write(
    request: Handle<beeline_rpc_request>,
    bytes: Bytes<'_>,
    length: usize,
) -> c_int {
    edge("beeline_rpc_reply_write", || {
        let exchange = &mut *REQUESTS.enter_own(request)?;
        let exchange = exchange.running()?;
        let bytes = bytes.read(length, "bytes")?;
        match &mut exchange.reply {
            State::Writing(writer) => {
                writer.write(bytes).map_err(|error| Failure::invalid(error.to_string()))?;
                Ok(OK)
            }
            _ => Err(exchange.not_open()),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_reply_commit(request: Handle<beeline_rpc_request>) -> c_int {
    edge("beeline_rpc_reply_commit", || {
        let exchange = &mut *REQUESTS.enter_own(request)?;
        let exchange = exchange.running()?;
        match core::mem::replace(&mut exchange.reply, State::Moving) {
            State::Writing(writer) => {
                exchange.reply = State::Done(writer.commit());
                Ok(OK)
            }
            other => {
                exchange.reply = other;
                Err(exchange.not_open())
            }
        }
    })
}
