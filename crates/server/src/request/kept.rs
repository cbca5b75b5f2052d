//! Values that modules store in a request from phase to phase.

use std::any::{Any, TypeId};
use std::rc::Rc;

use super::Request;

/// What subrequests know of what was stored in the requests that they belong to.
#[derive(Clone, Default)]
pub(crate) struct Inherited(Vec<(TypeId, Rc<dyn Any>)>);

impl Request {
    /// Stores a value for later phases of this request and for its subrequests.
    pub fn bequeath<T: Any>(&mut self, value: Rc<T>) {
        if self.kept::<Inherited>().is_none() {
            self.keep(Inherited::default());
        }
        if let Some(Inherited(values)) = self.kept_mut() {
            let id = TypeId::of::<T>();
            values.retain(|(of, _)| *of != id);
            values.push((id, value));
        }
    }

    /// A value that this request, or one that it belongs to, has stored for its subrequests.
    pub fn inherited<T: Any>(&self) -> Option<Rc<T>> {
        let Inherited(values) = self.kept()?;
        let (_, value) = values.iter().find(|(of, _)| *of == TypeId::of::<T>())?;
        value.clone().downcast().ok()
    }

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
