//! Who is let in without a list, because it shares a connection: what `include/beeline_admission.h` declares.

use core::ffi::c_int;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use beeline::ProofError;
use beeline_domain::{Admissions, Admitted, OtherEnd, Token};
use beeline_ffi::{Failure, Handle, HandleVariable, Kind, Out, Outcome, Shared, duplicate, edge};

use crate::window::status::{OK, duration, of_proof};

/// Whom offers of C let in. Any thread may use it.
#[derive(Debug)]
pub struct beeline_admissions(Admissions);

impl Kind for beeline_admissions {
    const NAME: &'static str = "admissions";
    const TAG: u8 = 0x41;
}

/// A proof that is good until it is closed.
#[derive(Debug)]
pub struct beeline_admitted {
    _proof: Admitted,
}

impl Kind for beeline_admitted {
    const NAME: &'static str = "admitted";
    const TAG: u8 = 0x43;
}

/// A token of C, until it is used.
#[derive(Debug)]
pub struct beeline_token(Mutex<Option<Token>>);

impl Kind for beeline_token {
    const NAME: &'static str = "token";
    const TAG: u8 = 0x45;
}

static ADMISSIONS: Shared<beeline_admissions> = Shared::new();
static ADMITTED: Shared<beeline_admitted> = Shared::new();
static TOKENS: Shared<beeline_token> = Shared::new();

/// The admissions of an offer's options.
pub(crate) fn admissions(given: Handle<beeline_admissions>) -> Outcome<Option<Admissions>> {
    if given.is_null() {
        return Ok(None);
    }
    Ok(Some(ADMISSIONS.get(given)?.0.clone()))
}

/// The token of a client's options. It is the client's from now on.
pub(crate) fn token(given: Handle<beeline_token>) -> Outcome<Option<Token>> {
    if given.is_null() { Ok(None) } else { use_up(given).map(Some) }
}

/// Takes the token of a handle, which has none from now on.
pub(crate) fn use_up(given: Handle<beeline_token>) -> Outcome<Token> {
    let held = TOKENS.get(given)?;
    let taken = held.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    taken.ok_or_else(|| Failure::invalid("token was used before; exchange another one"))
}

fn connection(number: c_int) -> Outcome<OwnedFd> {
    duplicate(number)
        .map_err(|error| Failure::invalid(format!("connection is the descriptor {number}: {error}")))
}

fn other_end(number: c_int) -> Outcome<OtherEnd> {
    OtherEnd::of_tcp(connection(number)?).map_err(|error| of_proof(&ProofError::from(error)))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_connection_user(connection: c_int, uid: Out<'_, u32>) -> c_int {
    edge("beeline_connection_user", || {
        uid.check("uid")?;
        uid.put(other_end(connection)?.uid(), "uid")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_admissions_open(admissions: Out<'_, Handle<beeline_admissions>>) -> c_int {
    edge("beeline_admissions_open", || {
        admissions.put(Handle::NULL, "admissions")?;
        admissions.put(ADMISSIONS.insert(beeline_admissions(Admissions::default()))?, "admissions")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_admissions_close(admissions: HandleVariable<'_, beeline_admissions>) -> c_int {
    edge("beeline_admissions_close", || ADMISSIONS.close(&admissions).map(|_| OK))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_admissions_admit_user(
    admissions: Handle<beeline_admissions>,
    connection: c_int,
    admitted: Out<'_, Handle<beeline_admitted>>,
) -> c_int {
    edge("beeline_admissions_admit_user", || {
        admitted.put(Handle::NULL, "admitted")?;
        let admissions = ADMISSIONS.get(admissions)?;
        let proof = admissions.0.admit(other_end(connection)?);
        let proof = proof.map_err(|error| of_proof(&beeline_domain::AdmitError::from(error).into()))?;
        admitted.put(ADMITTED.insert(beeline_admitted { _proof: proof })?, "admitted")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_admissions_admit_other_side(
    admissions: Handle<beeline_admissions>,
    number: c_int,
    timeout_ns: u64,
    admitted: Out<'_, Handle<beeline_admitted>>,
) -> c_int {
    edge("beeline_admissions_admit_other_side", || {
        admitted.put(Handle::NULL, "admitted")?;
        let admissions = ADMISSIONS.get(admissions)?;
        let proof = admissions.0.admit_other_side(connection(number)?, duration(timeout_ns));
        let proof = proof.map_err(|error| of_proof(&error.into()))?;
        admitted.put(ADMITTED.insert(beeline_admitted { _proof: proof })?, "admitted")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_admitted_close(admitted: HandleVariable<'_, beeline_admitted>) -> c_int {
    edge("beeline_admitted_close", || ADMITTED.close(&admitted).map(|_| OK))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_token_exchange(
    number: c_int,
    timeout_ns: u64,
    token: Out<'_, Handle<beeline_token>>,
    uid: Out<'_, u32>,
) -> c_int {
    edge("beeline_token_exchange", || {
        token.put(Handle::NULL, "token")?;
        let exchanged = Token::exchange(connection(number)?, duration(timeout_ns));
        let exchanged = exchanged.map_err(|error| of_proof(&error.into()))?;
        uid.put_if_wanted(exchanged.uid());
        token.put(TOKENS.insert(beeline_token(Mutex::new(Some(exchanged))))?, "token")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_token_close(token: HandleVariable<'_, beeline_token>) -> c_int {
    edge("beeline_token_close", || TOKENS.close(&token).map(|_| OK))
}
