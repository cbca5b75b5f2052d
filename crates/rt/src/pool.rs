//! Boxes that a loop reuses. The large state of an active connection is taken from a pool when a
//! request arrives and returned when the connection becomes idle: ten thousand idle connections
//! hold none, and a busy one allocates nothing.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// A loop's pool of reusable boxes.
pub struct Pool<T> {
    inner: Rc<Inner<T>>,
}

struct Inner<T> {
    name: &'static str,
    limit: usize,
    boxes: RefCell<Vec<Box<T>>>,
}

impl<T> Pool<T> {
    /// Creates an empty pool that keeps at most `limit` unused boxes; `name` is for status pages.
    pub fn new(name: &'static str, limit: usize) -> Self {
        Self { inner: Rc::new(Inner { name, limit, boxes: RefCell::new(Vec::new()) }) }
    }

    /// Takes an unused box, with the content it was returned with, or a new one made by `make`.
    pub fn take(&self, make: impl FnOnce() -> T) -> Pooled<T> {
        let used = self.inner.boxes.borrow_mut().pop();
        let value = used.unwrap_or_else(|| Box::new(make()));
        Pooled { value: Some(value), inner: self.inner.clone() }
    }

    /// The number of unused boxes.
    pub fn idle(&self) -> usize {
        self.inner.boxes.borrow().len()
    }

    /// The pool's name.
    pub fn name(&self) -> &'static str {
        self.inner.name
    }

    /// Frees unused boxes until at most `keep` are left.
    pub fn shrink(&self, keep: usize) {
        let surplus: Vec<Box<T>> = {
            let mut boxes = self.inner.boxes.borrow_mut();
            let keep = keep.min(boxes.len());
            boxes.drain(keep..).collect()
        };
        drop(surplus);
    }
}

impl<T> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

/// A box from a [`Pool`]; returns to it when dropped.
pub struct Pooled<T> {
    // `Some` until the drop.
    value: Option<Box<T>>,
    inner: Rc<Inner<T>>,
}

impl<T> Deref for Pooled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.value {
            Some(value) => value,
            None => unreachable!("a pooled box is emptied only by its drop"),
        }
    }
}

impl<T> DerefMut for Pooled<T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.value {
            Some(value) => value,
            None => unreachable!("a pooled box is emptied only by its drop"),
        }
    }
}

impl<T> Drop for Pooled<T> {
    fn drop(&mut self) {
        let Some(value) = self.value.take() else { return };
        // A panic may have left the value inconsistent: don't reuse it.
        if std::thread::panicking() {
            return;
        }
        let mut boxes = self.inner.boxes.borrow_mut();
        if boxes.len() < self.inner.limit {
            boxes.push(value);
        } else {
            drop(boxes);
            drop(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_back_what_was_used_up_to_the_limit() {
        let pool = Pool::new("test", 1);
        let mut first = pool.take(|| Vec::<u8>::with_capacity(100));
        first.push(1);
        let second = pool.take(Vec::new);
        drop(first);
        drop(second);
        assert_eq!(pool.idle(), 1);
        let again = pool.take(|| unreachable!("one is idle"));
        assert_eq!(*again, [1]);
        drop(again);
        pool.shrink(0);
        assert_eq!(pool.idle(), 0);
    }

    #[test]
    fn a_box_is_not_reused_after_a_panic() {
        let pool = Pool::new("test", 1);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut taken = pool.take(Vec::new);
            taken.push(1);
            std::panic::resume_unwind(Box::new(()));
        }));
        assert!(panicked.is_err());
        assert_eq!(pool.idle(), 0);
    }
}
