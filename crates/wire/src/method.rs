//! Request methods: Apache's numbers, registered methods, and sets of methods.

/// A method's number. As in Apache, `HEAD` has the number of `GET` (see
/// `RequestHead::header_only`). A method outside of the registry is [`Method::INVALID`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Method(u8);

macro_rules! methods {
    ($($constant:ident = $number:literal $name:literal,)*) => {
        impl Method {
            $(#[doc = concat!("`", $name, "`, Apache's number ", stringify!($number), ".")]
            pub const $constant: Method = Method($number);)*
        }
        /// Names by number, in Apache's order (`ap_method_registry_init`).
        const NAMES: [&str; 26] = [$($name),*];
    };
}

methods! {
    GET = 0 "GET",
    PUT = 1 "PUT",
    POST = 2 "POST",
    DELETE = 3 "DELETE",
    CONNECT = 4 "CONNECT",
    OPTIONS = 5 "OPTIONS",
    TRACE = 6 "TRACE",
    PATCH = 7 "PATCH",
    PROPFIND = 8 "PROPFIND",
    PROPPATCH = 9 "PROPPATCH",
    MKCOL = 10 "MKCOL",
    COPY = 11 "COPY",
    MOVE = 12 "MOVE",
    LOCK = 13 "LOCK",
    UNLOCK = 14 "UNLOCK",
    VERSION_CONTROL = 15 "VERSION-CONTROL",
    CHECKOUT = 16 "CHECKOUT",
    UNCHECKOUT = 17 "UNCHECKOUT",
    CHECKIN = 18 "CHECKIN",
    UPDATE = 19 "UPDATE",
    LABEL = 20 "LABEL",
    REPORT = 21 "REPORT",
    MKWORKSPACE = 22 "MKWORKSPACE",
    MKACTIVITY = 23 "MKACTIVITY",
    BASELINE_CONTROL = 24 "BASELINE-CONTROL",
    MERGE = 25 "MERGE",
}

/// The number of the first registered method.
const FIRST_REGISTERED: u8 = 27;

/// The highest number of a method, including registered ones (Apache's `METHODS` minus 1).
const METHOD_LIMIT: u8 = 63;

impl Method {
    /// A method that is not registered (`M_INVALID`).
    pub const INVALID: Method = Method(26);

    /// The number of the method called `name`. Names are case-sensitive (RFC 9110 section 9.1).
    /// `HEAD` gives [`Method::GET`].
    pub fn of(name: &[u8], registry: &MethodRegistry) -> Method {
        match name {
            b"GET" | b"HEAD" => Method::GET,
            b"POST" => Method::POST,
            _ => known(name).or_else(|| registry.find(name)).unwrap_or(Method::INVALID),
        }
    }

    /// Apache's number of the method.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The method's name; `None` for [`Method::INVALID`].
    pub fn name(self, registry: &MethodRegistry) -> Option<&[u8]> {
        match NAMES.get(usize::from(self.0)) {
            Some(name) => Some(name.as_bytes()),
            None => registry.name(self),
        }
    }

    /// Whether the method is registered.
    pub const fn is_known(self) -> bool {
        self.0 != Method::INVALID.0
    }
}

fn known(name: &[u8]) -> Option<Method> {
    let at = NAMES.iter().position(|known| known.as_bytes() == name)?;
    Some(Method(at as u8))
}

/// Methods that `RegisterHttpMethod` and modules add; part of the configuration.
#[derive(Clone, Debug, Default)]
pub struct MethodRegistry {
    names: Vec<Box<[u8]>>,
}

/// All method numbers are in use (`AH01610`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Maximum new request methods reached")]
pub struct TooManyMethods;

impl MethodRegistry {
    /// Returns a registry of Apache's own methods.
    pub const fn new() -> Self {
        MethodRegistry { names: Vec::new() }
    }

    /// Registers `name` and returns its number. A registered name keeps its number.
    pub fn register(&mut self, name: &[u8]) -> Result<Method, TooManyMethods> {
        let found = Method::of(name, self);
        if found.is_known() {
            return Ok(found);
        }
        let number = FIRST_REGISTERED + self.names.len() as u8;
        if number >= METHOD_LIMIT {
            return Err(TooManyMethods);
        }
        self.names.push(name.into());
        Ok(Method(number))
    }

    fn find(&self, name: &[u8]) -> Option<Method> {
        let at = self.names.iter().position(|known| **known == *name)?;
        Some(Method(FIRST_REGISTERED + at as u8))
    }

    fn name(&self, method: Method) -> Option<&[u8]> {
        let at = method.0.checked_sub(FIRST_REGISTERED)?;
        self.names.get(usize::from(at)).map(|name| &**name)
    }
}

/// A set of methods, for `<Limit>`, `<LimitExcept>`, `AllowMethods` and the `Allow` field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MethodSet(u64);

impl MethodSet {
    /// The empty set.
    pub const EMPTY: MethodSet = MethodSet(0);
    /// Every method, including unregistered ones.
    pub const ALL: MethodSet = MethodSet(u64::MAX);

    /// The set of one method.
    pub const fn only(method: Method) -> Self {
        MethodSet(1 << method.0)
    }

    /// Adds a method.
    pub const fn insert(&mut self, method: Method) {
        self.0 |= 1 << method.0;
    }

    /// Removes a method.
    pub const fn remove(&mut self, method: Method) {
        self.0 &= !(1 << method.0);
    }

    /// Whether the set contains the method.
    pub const fn contains(self, method: Method) -> bool {
        self.0 & (1 << method.0) != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Methods in either set.
    pub const fn union(self, other: MethodSet) -> MethodSet {
        MethodSet(self.0 | other.0)
    }

    /// Methods in both sets.
    pub const fn intersection(self, other: MethodSet) -> MethodSet {
        MethodSet(self.0 & other.0)
    }

    /// The methods that are not in this set.
    pub const fn complement(self) -> MethodSet {
        MethodSet(!self.0)
    }

    /// The set's bits, one per method number (Apache's `method_mask`).
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Iterates over the methods of the set by number.
    pub fn iter(self) -> impl Iterator<Item = Method> {
        (0..=METHOD_LIMIT).map(Method).filter(move |method| self.contains(*method))
    }
}

impl FromIterator<Method> for MethodSet {
    fn from_iter<T: IntoIterator<Item = Method>>(methods: T) -> Self {
        let mut set = MethodSet::EMPTY;
        for method in methods {
            set.insert(method);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_apaches() {
        let none = MethodRegistry::new();
        assert_eq!(Method::of(b"HEAD", &none), Method::GET);
        assert_eq!(Method::of(b"MERGE", &none).number(), 25);
        assert_eq!(Method::of(b"get", &none), Method::INVALID);
        assert_eq!(Method::INVALID.name(&none), None);
        assert_eq!(Method::VERSION_CONTROL.name(&none), Some(b"VERSION-CONTROL".as_slice()));
    }

    #[test]
    fn registered_methods_get_numbers_until_none_is_left() {
        let mut registry = MethodRegistry::new();
        let search = registry.register(b"SEARCH").unwrap();
        assert_eq!(search.number(), 27);
        assert_eq!(registry.register(b"SEARCH"), Ok(search));
        assert_eq!(registry.register(b"PUT"), Ok(Method::PUT));
        assert_eq!(search.name(&registry), Some(b"SEARCH".as_slice()));
        let last = (0..100).map_while(|n| registry.register(format!("X{n}").as_bytes()).ok());
        assert_eq!(last.last().map(Method::number), Some(62));
        assert_eq!(registry.register(b"Y"), Err(TooManyMethods));
    }

    #[test]
    fn sets_hold_invalid_too() {
        let set: MethodSet = [Method::GET, Method::POST].into_iter().collect();
        assert!(!set.contains(Method::INVALID));
        assert!(set.complement().contains(Method::INVALID));
        assert_eq!(set.iter().count(), 2);
        assert_eq!(set.union(MethodSet::only(Method::PUT)).iter().count(), 3);
    }
}
