//! SSLUseStapling: the OCSP response sent with each handshake. A handshake never waits for a
//! responder: the server asks in advance, and this state machine, one per certificate, determines
//! when, and what is stapled in between.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#sslusestapling>, `ssl_util_stapling.c`.

use rustls_pki_types::CertificateDer;

use crate::ocsp::response::{self, Fault, Policy, Status};
use crate::ocsp::{CertificateId, HttpRequest, Request, Responder, responder_of};
use crate::{Finding, certs, der};

/// A response is renewed when 1/4 of its life is left, so that a slow responder causes no gap.
const RENEW_SHARE: u64 = 4;

/// `tryLater` as a complete OCSPResponse.
const TRY_LATER: u8 = 3;

/// The SSLStapling* directives, with Apache's defaults. (SSLStaplingCache names the cache, whose
/// role this state machine has.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// SSLStaplingResponseTimeSkew. Default: 300.
    pub skew_seconds: i64,
    /// SSLStaplingResponseMaxAge. Default: no limit.
    pub max_age_seconds: Option<i64>,
    /// SSLStaplingStandardCacheTimeout. Default: 3600.
    pub cache_seconds: u64,
    /// SSLStaplingErrorCacheTimeout. Default: 600.
    pub error_cache_seconds: u64,
    /// SSLStaplingReturnResponderErrors. Default: on.
    pub return_errors: bool,
    /// SSLStaplingFakeTryLater. Default: on; only with return_errors.
    pub fake_try_later: bool,
    /// SSLStaplingForceURL.
    pub force_url: Option<Responder>,
    /// SSLStaplingResponderTimeout, for the caller's connection. Default: 10.
    pub timeout_seconds: u64,
    /// SSLOCSPProxyURL, which stapling uses too.
    pub proxy: Option<Responder>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            skew_seconds: 300,
            max_age_seconds: None,
            cache_seconds: 3600,
            error_cache_seconds: 600,
            return_errors: true,
            fake_try_later: true,
            force_url: None,
            timeout_seconds: 10,
            proxy: None,
        }
    }
}

/// The stapling of one certificate.
#[derive(Clone, Debug)]
pub struct Stapling {
    settings: Settings,
    issuer: CertificateDer<'static>,
    request: Request,
    responder: Responder,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// No request has been made.
    New,
    /// A response, or `None` if it is an error that is not passed on.
    Held { staple: Option<Vec<u8>>, renew_at: u64, until: u64 },
}

/// The outcome of an attempt, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The stapled response says that the certificate is good.
    Good,
    /// The stapled response has another status.
    Status(Status),
    /// No response was received.
    Unreachable,
    /// The response was invalid.
    Faulty(Fault),
}

impl Stapling {
    /// Stapling for a chain, leaf first. The issuer is taken from the chain or, if that is the leaf
    /// only, from `authorities` (the certificates of SSLCACertificateFile and similar directives).
    ///
    /// # Errors
    /// The issuer or the responder is unknown: Apache warns (AH02217, AH02218) and continues
    /// without stapling.
    pub fn new(
        chain: &[CertificateDer<'static>],
        authorities: &[CertificateDer<'static>],
        settings: Settings,
        host_id: &str,
    ) -> Result<Self, Finding> {
        let warning = |number, what: &str| {
            Finding::warning("SSLUseStapling", format!("{host_id}: {what}")).numbered(number)
        };
        let leaf = chain.first().and_then(|der| Some((der, certs::parse(der).ok()?)));
        let (leaf_der, leaf) = leaf.ok_or_else(|| warning(2604, "no certificate to staple for"))?;
        let is_issuer = |der: &&CertificateDer<'static>| {
            certs::parse(der).is_ok_and(|one| one.subject().as_raw() == leaf.issuer().as_raw())
        };
        let issuer = chain.iter().skip(1).chain(authorities).find(is_issuer).cloned();
        let id = issuer.as_ref().and_then(|issuer| CertificateId::of(leaf_der, issuer));
        let (Some(issuer), Some(id)) = (issuer, id) else {
            return Err(warning(2217, "can't retrieve issuer certificate for stapling"));
        };
        let responder = settings.force_url.clone().or_else(|| responder_of(&leaf));
        let responder = responder.ok_or_else(|| {
            warning(2218, "no OCSP URI in certificate and no SSLStaplingForceURL set")
        })?;
        let request = Request::new(id, false);
        Ok(Self { settings, issuer, request, responder, state: State::New })
    }

    /// The request to send, if one is due. `now` is in seconds since 1970.
    pub fn due(&self, now: u64) -> Option<HttpRequest> {
        match &self.state {
            State::Held { renew_at, .. } if now < *renew_at => None,
            _ => {
                let proxy = self.settings.proxy.as_ref();
                Some(HttpRequest::new(&self.request, &self.responder, proxy))
            }
        }
    }

    /// When to call [`Stapling::due`] again.
    pub fn due_at(&self) -> u64 {
        match &self.state {
            State::New => 0,
            State::Held { renew_at, .. } => *renew_at,
        }
    }

    /// The response currently stapled.
    pub fn current(&self, now: u64) -> Option<&[u8]> {
        match &self.state {
            State::Held { staple, until, .. } if now < *until => staple.as_deref(),
            _ => None,
        }
    }

    /// Processes the body of a responder's HTTP response, or `None` if there was none.
    pub fn answered(&mut self, body: Option<&[u8]>, now: u64) -> Outcome {
        let Some(body) = body else {
            let fake = self.settings.return_errors && self.settings.fake_try_later;
            self.failed(fake.then(try_later), now);
            return Outcome::Unreachable;
        };
        match response::verify(body, &self.request, &self.policy(now)) {
            Ok(answer) if answer.status == Status::Good || self.settings.return_errors => {
                let end = self.usable_until(&answer);
                let life = self.settings.cache_seconds.min(end.saturating_sub(now)).max(1);
                self.state = State::Held {
                    staple: Some(body.to_vec()),
                    renew_at: now + (life - life / RENEW_SHARE).max(1),
                    until: end.min(now + life.saturating_mul(2)).max(now + 1),
                };
                match answer.status {
                    Status::Good => Outcome::Good,
                    status => Outcome::Status(status),
                }
            }
            Ok(answer) => {
                self.failed(None, now);
                Outcome::Status(answer.status)
            }
            Err(fault) => {
                let hand_on = matches!(fault, Fault::Responder(_)) && self.settings.return_errors;
                self.failed(hand_on.then(|| body.to_vec()), now);
                Outcome::Faulty(fault)
            }
        }
    }

    /// A good response that is still valid survives a failed renewal; otherwise the error applies.
    fn failed(&mut self, error: Option<Vec<u8>>, now: u64) {
        let again = now + self.settings.error_cache_seconds.max(1);
        match &mut self.state {
            State::Held { staple: Some(held), renew_at, until }
                if now < *until && !is_error(held) =>
            {
                *renew_at = again;
            }
            state => *state = State::Held { staple: error, renew_at: again, until: again },
        }
    }

    fn usable_until(&self, answer: &response::Answer) -> u64 {
        let by_age = self.settings.max_age_seconds.map(|age| answer.this_update + age);
        let ends = [answer.next_update, by_age];
        let end = ends.into_iter().flatten().min();
        end.map_or(u64::MAX, |end| u64::try_from(end).unwrap_or(0))
    }

    fn policy(&self, now: u64) -> Policy<'_> {
        Policy {
            issuer: &self.issuer,
            trusted: &[],
            verify_signature: true,
            skew_seconds: self.settings.skew_seconds,
            max_age_seconds: self.settings.max_age_seconds,
            now: i64::try_from(now).unwrap_or(i64::MAX),
        }
    }
}

fn try_later() -> Vec<u8> {
    der::sequence(&[&der::element(der::ENUMERATED, &[TRY_LATER])])
}

/// Whether a complete OCSPResponse is an error without a certificate's status.
fn is_error(response: &[u8]) -> bool {
    let mut reader = der::Reader::new(response).enter(der::SEQUENCE);
    reader.as_mut().and_then(|reader| reader.content(der::ENUMERATED)) != Some(&[0])
}

#[cfg(test)]
mod tests;
