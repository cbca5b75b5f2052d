//! Fields of a response that depend on the time of its request: `Expires`, and the `max-age` of
//! `Cache-Control`.

use super::Request;

/// When a response expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryTime {
    /// So many seconds after the request.
    AfterRequest(i32),
    /// At this time, in microseconds since the epoch.
    At(i64),
}

/// The fields that say when a response expires, as far as they still hold what was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The time.
    pub time: ExpiryTime,
    /// Whether `Expires` depends on the time of the request.
    pub moves_date: bool,
    /// Whether `max-age` does.
    pub moves_age: bool,
}

impl ExpiryTime {
    /// `Expires` in seconds since the epoch, and `max-age`, of a response to a request of `now_us`.
    /// A time in the past is replaced by the present.
    pub fn fields(self, now_us: u64) -> (i64, u64) {
        let now = i64::try_from(now_us).unwrap_or(i64::MAX);
        let time = match self {
            ExpiryTime::AfterRequest(seconds) => now.saturating_add(i64::from(seconds) * 1_000_000),
            ExpiryTime::At(time) => time,
        };
        let left = u64::try_from(time.saturating_sub(now)).unwrap_or(0);
        (time.max(now) / 1_000_000, left / 1_000_000)
    }
}

impl Request {
    /// Sets `Expires`, and adds `max-age` to `Cache-Control`. A cached response gets its own for
    /// each request.
    pub fn expire(&mut self, time: ExpiryTime) {
        let (date, age) = time.fields(self.time_us);
        let mut age_text = b"max-age=".to_vec();
        age_text.extend_from_slice(itoa::Buffer::new().format(age).as_bytes());
        self.response.headers_out.merge(b"Cache-Control", &age_text);
        self.response.headers_out.set(b"Expires", &wire::date::format(date));
        let moves_age = matches!(time, ExpiryTime::At(_));
        self.response.expiry = Some(Expiry { time, moves_date: true, moves_age });
    }

    /// Notes that a field of a successful response is being changed: by a value of its own
    /// (`is_fixed`), or by one that is made of the old one.
    pub fn changes_field(&mut self, name: &[u8], is_fixed: bool) {
        let Some(expiry) = &mut self.response.expiry else { return };
        let moves = match name.len() {
            7 if name.eq_ignore_ascii_case(b"Expires") => &mut expiry.moves_date,
            13 if name.eq_ignore_ascii_case(b"Cache-Control") => &mut expiry.moves_age,
            _ => return,
        };
        // What is made of a moving value can't be made again.
        self.depends.pure &= is_fixed || !*moves;
        *moves = false;
    }
}

#[cfg(test)]
mod tests {
    use super::ExpiryTime::{AfterRequest, At};

    #[test]
    fn what_has_expired_expires_now() {
        let now = 1_000_000_500_000;
        assert_eq!(AfterRequest(60).fields(now), (1_000_060, 60));
        assert_eq!(AfterRequest(-60).fields(now), (1_000_000, 0));
        assert_eq!(At(1_000_060_400_000).fields(now), (1_000_060, 59));
        assert_eq!(At(1_000_060_500_000).fields(now), (1_000_060, 60));
        assert_eq!(At(5).fields(now), (1_000_000, 0));
        assert_eq!(At(i64::MIN).fields(u64::MAX).1, 0);
    }
}
