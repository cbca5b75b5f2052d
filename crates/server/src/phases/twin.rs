//! A copy of a request, for work on its response that goes on while that is sent.

use std::cell::Cell;
use std::rc::Rc;

use wire::Table;

use crate::request::Request;

/// Where a twin leaves its variables for the request.
#[derive(Clone, Default)]
pub struct LateVariables(Rc<Cell<Option<Table>>>);

impl LateVariables {
    /// Leaves the variables, once the twin's work is done.
    pub fn leave(&self, env: Table) {
        self.0.set(Some(env));
    }
}

impl Request {
    /// Takes the variables that a twin has left: the log has them.
    pub fn take_late_variables(&mut self) {
        if let Some(env) = self.kept::<LateVariables>().and_then(|late| late.0.take()) {
            self.env = env;
        }
    }

    /// A copy that has neither bodies nor filters, nor values that modules have stored, nor
    /// requests that were redirected to this one. Its subrequests are as those of this request.
    pub fn twin(&mut self) -> Request {
        let place = self.engine.plans.place(&self.host);
        let mut twin = Request::blank(self.engine.clone(), self.connection.clone(), place);
        self.derive(&mut twin, &[]);
        twin.layer = self.layer.clone();
        twin.plan = self.plan.clone();
        twin.copy = self.copy;
        twin.if_walks = self.if_walks.clone();
        twin.named_port = self.named_port;
        twin.user.clone_from(&self.user);
        twin.auth_type.clone_from(&self.auth_type);
        twin.handler.clone_from(&self.handler);
        twin.handler_of_type = self.handler_of_type;
        twin.env = self.env.clone();
        twin.notes = self.notes.clone();
        twin.main.clone_from(&self.main);
        twin.file_lookup = self.file_lookup;
        twin.quick_lookup = self.quick_lookup;
        self.copy_head(&mut twin);
        self.copy_resource(&mut twin);
        let (own, response) = (&self.response, &mut twin.response);
        response.status = own.status;
        response.content_type.clone_from(&own.content_type);
        response.headers_out = own.headers_out.clone();
        response.err_headers_out = own.err_headers_out.clone();
        twin
    }

    fn copy_head(&self, twin: &mut Request) {
        let (own, head) = (&self.head, &mut twin.head);
        head.method = own.method;
        head.method_name.clone_from(&own.method_name);
        head.header_only = own.header_only;
        head.unparsed_uri.clone_from(&own.unparsed_uri);
        head.absolute.clone_from(&own.absolute);
    }

    fn copy_resource(&self, twin: &mut Request) {
        let (own, resource) = (&self.resource, &mut twin.resource);
        resource.uri.clone_from(&own.uri);
        resource.args.clone_from(&own.args);
        resource.filename.clone_from(&own.filename);
        resource.canonical_filename.clone_from(&own.canonical_filename);
        resource.path_info.clone_from(&own.path_info);
        resource.used_path_info = own.used_path_info;
        resource.proxied = own.proxied;
        resource.file = own.file;
    }
}
