//! Values that modules store in a request from phase to phase.

use std::any::{Any, TypeId};

use super::Request;

impl Request {
    /// Stores a value for later phases of this request.
    pub fn keep<T: Any>(&mut self, value: T) {
        let id = TypeId::of::<T>();
        self.extensions.retain(|(of, _)| *of != id);
        self.extensions.push((id, Box::new(value)));
    }

    /// A stored value.
    pub fn kept<T: Any>(&self) -> Option<&T> {
        let id = TypeId::of::<T>();
        self.extensions.iter().find(|(of, _)| *of == id)?.1.downcast_ref()
    }

    /// A stored value, for writing.
    pub fn kept_mut<T: Any>(&mut self) -> Option<&mut T> {
        let id = TypeId::of::<T>();
        self.extensions.iter_mut().find(|(of, _)| *of == id)?.1.downcast_mut()
    }

    /// Drops a stored value.
    pub(crate) fn forget<T: Any>(&mut self) {
        let id = TypeId::of::<T>();
        self.extensions.retain(|(of, _)| *of != id);
    }

    /// Takes over the values of a subrequest.
    pub(crate) fn adopt_kept(&mut self, kept: Vec<(TypeId, Box<dyn Any>)>) {
        for (id, value) in kept {
            self.extensions.retain(|(of, _)| *of != id);
            self.extensions.push((id, value));
        }
    }
}
