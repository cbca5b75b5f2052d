//! The requests that internal redirects replaced, which only the log shows.

use std::borrow::Cow;
use std::rc::Rc;

use server::plan::{Layer, Plan};
use server::request::{FileInfo, Request};
use wire::Table;

/// What the log shows of a request before an internal redirect.
pub struct Redirected {
    layer: Rc<Layer>,
    plan: Rc<Plan>,
    filename: Vec<u8>,
    uri: Vec<u8>,
    path_info: Vec<u8>,
    content_type: Option<Vec<u8>>,
    handler: Option<Cow<'static, [u8]>>,
    file: FileInfo,
    env: Table,
    /// The path that it was redirected to.
    target: Vec<u8>,
}

impl Redirected {
    /// Those before `request`, the first one first.
    pub fn all_before(request: &Request) -> Box<[Redirected]> {
        let mut all = Vec::new();
        let mut next = request;
        while let Some(before) = &next.prev {
            let target = next.head.unparsed_uri.split(|byte| *byte == b'?').next();
            all.push(Redirected::new(before, target.unwrap_or_default()));
            next = before;
        }
        all.reverse();
        all.into()
    }

    fn new(request: &Request, target: &[u8]) -> Redirected {
        Redirected {
            layer: request.layer.clone(),
            plan: request.plan.clone(),
            filename: request.resource.filename.clone(),
            uri: request.resource.uri.clone(),
            path_info: request.resource.path_info.clone(),
            content_type: request.response.content_type.clone(),
            handler: request.handler.clone().filter(|_| !request.handler_of_type),
            file: request.resource.file,
            env: request.own_variables(),
            target: target.to_vec(),
        }
    }

    /// Fills in the properties of this request, and goes on to the one after it.
    pub fn give_to(&self, request: &mut Request) {
        request.layer = self.layer.clone();
        request.plan = self.plan.clone();
        request.resource.filename.clone_from(&self.filename);
        request.resource.uri.clone_from(&self.uri);
        request.resource.path_info.clone_from(&self.path_info);
        request.response.content_type.clone_from(&self.content_type);
        request.handler.clone_from(&self.handler);
        request.resource.file = self.file;
        request.tell_tls();
        request.give_variables(&self.env);
        let target = request.with_query(self.target.clone());
        request.succeed(&target);
    }

    /// The bytes that it takes, with a configuration that may no longer be in any loop's cache.
    pub fn bytes(&self) -> usize {
        let names = self.filename.len() + self.uri.len() + self.path_info.len();
        names + self.target.len() + self.env.capacity_bytes() + self.layer.foreign_bytes()
    }
}
