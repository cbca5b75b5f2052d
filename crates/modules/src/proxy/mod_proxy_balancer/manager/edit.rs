//! The forms for a balancer and for a worker. Source: `balancer_display_page`, `create_radio`.

use super::Shown;
use super::html::{
    attempts, factor, method, put, put_escaped, put_name, put_sticky, put_url, short_name,
};
use crate::proxy::mod_proxy::checks::{METHODS, Method};
use crate::proxy::mod_proxy::status::Status;
use crate::proxy::mod_proxy::workers::{Balancer, Worker};

fn radio(out: &mut Vec<u8>, name: &str, is_on: bool) {
    let (on, off) = if is_on { (" checked", "") } else { ("", " checked") };
    put(
        out,
        format!(
            "<td><label for='{name}1'>On</label> <input name='{name}' id='{name}1' value='1' \
             type=radio{on}> <br/> <label for='{name}0'>Off</label> <input name='{name}' \
             id='{name}0' value='0' type=radio{off}></td>\n"
        ),
    );
}

fn begin(shown: &Shown<'_>, out: &mut Vec<u8>) {
    put(out, "</h3>\n<form method='POST' enctype='application/x-www-form-urlencoded' action=\"");
    put_url(out, &shown.request.construct_url(&shown.request.resource.uri));
    put(out, "\">\n<table>");
}

fn end(balancer: &Balancer, out: &mut Vec<u8>) {
    put(out, "<input type=hidden name='b' id='b' value=\"");
    put_escaped(out, short_name(balancer));
    put(out, "\">\n<input type=hidden name='nonce' id='nonce' value='");
    put_escaped(out, &balancer.state.nonce());
    put(out, "'>\n</form>\n<hr />\n");
}

pub(super) fn worker(shown: &Shown<'_>, balancer: &Balancer, worker: &Worker, out: &mut Vec<u8>) {
    let state = &worker.state;
    put(out, "<h3>Edit worker settings for ");
    let (open, close) = if worker.target.socket.is_some() { ("<i>", "</i>") } else { ("", "") };
    put(out, open);
    put_name(out, worker);
    put(out, close);
    begin(shown, out);
    let (factor, set) = (factor(worker), state.lbset());
    put(
        out,
        format!(
            "<tr><td>Load factor:</td><td><input name='w_lf' id='w_lf' type=text \
             value='{factor}'></td></tr>\n<tr><td>LB Set:</td><td><input name='w_ls' id='w_ls' \
             type=text value='{set}'></td></tr>\n<tr><td>Route:</td><td><input name='w_wr' \
             id='w_wr' type=text value=\""
        ),
    );
    put_escaped(out, &worker.route());
    put(
        out,
        "\"></td></tr>\n<tr><td>Route Redirect:</td><td><input name='w_rr' id='w_rr' type=text \
         value=\"",
    );
    put_escaped(out, &worker.redirect());
    put(out, "\"></td></tr>\n");
    write_status(shown, state.status(), out);
    write_checks(shown, worker, out);
    put(
        out,
        "<tr><td colspan='2'><input type=submit value='Submit'></td></tr>\n</table>\n\
         <input type=hidden name='w' id='w' value=\"",
    );
    put_url(out, &worker.name);
    put(out, "\">\n");
    end(balancer, out);
}

fn write_status(shown: &Shown<'_>, status: Status, out: &mut Vec<u8>) {
    let checks = shown.conditions.is_some();
    put(
        out,
        "<tr><td>Status:</td><td><table><tr><th>Ignore Errors</th><th>Draining Mode</th>\
         <th>Disabled</th><th>Hot Standby</th><th>Hot Spare</th>",
    );
    if checks {
        put(out, "<th>HC Fail</th>");
    }
    put(out, "<th>Stopped</th></tr>\n<tr>");
    radio(out, "w_status_I", status.has(Status::IGNORE_ERRORS));
    radio(out, "w_status_N", status.has(Status::DRAIN));
    radio(out, "w_status_D", status.has(Status::DISABLED));
    radio(out, "w_status_H", status.has(Status::HOT_STANDBY));
    radio(out, "w_status_R", status.has(Status::HOT_SPARE));
    if checks {
        radio(out, "w_status_C", status.has(Status::HC_FAIL));
    }
    radio(out, "w_status_S", status.has(Status::STOPPED));
    put(out, "</tr></table></td></tr>\n");
}

fn write_checks(shown: &Shown<'_>, worker: &Worker, out: &mut Vec<u8>) {
    let Some(conditions) = shown.conditions else { return };
    let state = &worker.state;
    put(
        out,
        "<tr><td colspan='2'>\n<table align='center'><tr><th>Health Check param</th>\
         <th>Value</th></tr>\n<tr><td>Method</td><td><select name='w_hm'>\n",
    );
    let own = Method::of_number(state.check_method());
    for (name, method) in METHODS.iter().filter(|(_, one)| one.is_available(shown.has_ajp)) {
        let selected = if *method == own { "selected" } else { "" };
        put(out, format!("<option value='{name}' {selected} >{name}</option>\n"));
    }
    put(out, "</select>\n</td></tr>\n<tr><td>Expr</td><td><select name='w_he'>\n");
    let own = state.check_condition();
    for condition in conditions {
        let selected = if condition.name == own { "selected" } else { "" };
        put(out, "<option value='");
        put_escaped(out, &condition.name);
        put(out, format!("' {selected} >"));
        put_escaped(out, &condition.name);
        put(out, "</option>\n");
    }
    let interval = state.check_interval_us() / 1000;
    let (passes, fails) = state.checks_needed();
    put(
        out,
        format!(
            "</select>\n</td></tr>\n<tr><td>Interval (ms)</td><td><input name='w_hi' id='w_hi' \
             type='text' value='{interval}'></td></tr>\n<tr><td>Passes trigger</td><td><input \
             name='w_hp' id='w_hp' type='text' value='{passes}'></td></tr>\n<tr><td>Fails \
             trigger)</td><td><input name='w_hf' id='w_hf' type='text' \
             value='{fails}'></td></tr>\n<tr><td>HC uri</td><td><input name='w_hu' id='w_hu' \
             type='text' value=\""
        ),
    );
    put_escaped(out, &state.check_uri());
    put(out, "\"></td></tr>\n</table>\n</td></tr>\n");
}

pub(super) fn balancer(shown: &Shown<'_>, balancer: &Balancer, out: &mut Vec<u8>) {
    let current = balancer.state.current();
    put(out, "<h3>Edit balancer settings for ");
    put_escaped(out, &balancer.name);
    begin(shown, out);
    put(out, "\n<tr><td>LBmethod:</td><td>\n<select name='b_lbm' id='b_lbm'>");
    let own = method(balancer, &current);
    for (name, _) in balancer.methods.iter() {
        let selected = if *name == own { " selected " } else { "" };
        put(out, format!("<option value='{name}'{selected}>{name}\n"));
    }
    let timeout = current.timeout.unwrap_or_default().as_secs();
    let (attempts, _) = attempts(balancer, &current);
    put(
        out,
        format!(
            "</select>\n</td></tr>\n<tr><td>Timeout:</td><td><input name='b_tmo' id='b_tmo' \
             type=text value='{timeout}'></td></tr>\n<tr><td>Failover Attempts:</td><td><input \
             name='b_max' id='b_max' type=text value='{attempts}'></td></tr>\n<tr><td>Disable \
             Failover:</td>"
        ),
    );
    radio(out, "b_sforce", current.no_failover);
    put(
        out,
        "</tr>\n<tr><td>Sticky Session:</td><td><input name='b_ss' id='b_ss' size=64 type=text \
         value =\"",
    );
    put_sticky(out, &current, "|");
    put(out, "\">&nbsp;&nbsp;&nbsp;&nbsp;(Use '-' to delete)</td></tr>\n");
    let (places, used) = balancer.places();
    if used < places {
        put(
            out,
            "<tr><td>Add New Worker:</td><td><input name='b_nwrkr' id='b_nwrkr' size=32 \
             type=text>&nbsp;&nbsp;&nbsp;&nbsp;Are you sure? <input name='b_wyes' id='b_wyes' \
             type=checkbox value='1'></td></tr>",
        );
    }
    put(out, "<tr><td colspan=2><input type=submit value='Submit'></td></tr>\n</table>\n");
    end(balancer, out);
}
