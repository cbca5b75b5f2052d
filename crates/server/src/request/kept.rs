//! Values that modules keep on a request from phase to phase.

use std::any::{Any, TypeId};

use super::Request;

impl Request {
    /// Keeps a value for later phases of this request.
    pub fn keep<T: Any>(&mut self, value: T) {
        let id = TypeId::of::<T>();
        self.extensions.retain(|(of, _)| *of != id);
        self.extensions.push((id, Box::new(value)));
    }

    /// A value kept before.
    pub fn kept<T: Any>(&self) -> Option<&T> {
        let id = TypeId::of::<T>();
        self.extensions.iter().find(|(of, _)| *of == id)?.1.downcast_ref()
    }

    /// A value kept before, for writing.
    pub fn kept_mut<T: Any>(&mut self) -> Option<&mut T> {
        let id = TypeId::of::<T>();
        self.extensions.iter_mut().find(|(of, _)| *of == id)?.1.downcast_mut()
    }

    /// Values kept by a subrequest become this request's.
    pub(crate) fn adopt_kept(&mut self, kept: Vec<(TypeId, Box<dyn Any>)>) {
        for (id, value) in kept {
            self.extensions.retain(|(of, _)| *of != id);
            self.extensions.push((id, value));
        }
    }
}
