//! mod_wsgi with the real frameworks, in a virtual environment below the target directory.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crate::site::Site;

/// A site with a session that counts, an upload, and its admin.
const DJANGO: &str = r#"
import os, sys
from django.conf import settings
settings.configure(
    DEBUG=False, SECRET_KEY='x' * 50, ALLOWED_HOSTS=['*'], ROOT_URLCONF=__name__,
    INSTALLED_APPS=['django.contrib.admin', 'django.contrib.auth', 'django.contrib.messages',
        'django.contrib.contenttypes', 'django.contrib.sessions'],
    MIDDLEWARE=['django.contrib.sessions.middleware.SessionMiddleware',
        'django.contrib.auth.middleware.AuthenticationMiddleware',
        'django.contrib.messages.middleware.MessageMiddleware'],
    SESSION_ENGINE='django.contrib.sessions.backends.signed_cookies',
    DATABASES={'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': ':memory:'}},
    TEMPLATES=[{'BACKEND': 'django.template.backends.django.DjangoTemplates', 'APP_DIRS': True,
        'OPTIONS': {'context_processors': ['django.template.context_processors.request',
            'django.contrib.auth.context_processors.auth',
            'django.contrib.messages.context_processors.messages']}}],
)
import django
django.setup()
from django.contrib import admin
from django.http import HttpResponse
from django.urls import path
from django.core.wsgi import get_wsgi_application

def count(request):
    request.session['count'] = request.session.get('count', 0) + 1
    return HttpResponse('count %d at %s' % (request.session['count'], request.path))

def upload(request):
    return HttpResponse('%d bytes' % sum(len(f.read()) for f in request.FILES.values()))

upload.csrf_exempt = True
urlpatterns = [path('count', count), path('upload', upload), path('admin/', admin.site.urls)]
sys.modules[__name__].urlpatterns = urlpatterns
application = get_wsgi_application()
"#;

const FLASK: &str = r"
from flask import Flask, request, session
application = Flask(__name__)
application.secret_key = 'x'

@application.route('/<name>', methods=['GET', 'POST'])
def page(name):
    return 'flask %s %s %s' % (name, request.args.get('a'), request.form.get('b'))
";

const PYRAMID: &str = r"
from pyramid.config import Configurator
from pyramid.response import Response

def page(request):
    return Response('pyramid %s %s' % (request.matchdict['name'], request.script_name))

with Configurator() as config:
    config.add_route('page', '/{name}')
    config.add_view(page, route_name='page')
    application = config.make_wsgi_app()
";

/// What is installed.
const PACKAGES: [&str; 3] = ["django~=5.2", "flask~=3.1", "pyramid~=2.0"];

/// The virtual environment with the frameworks, which is made once and kept. Without the network,
/// or without pip, there is none, and a message says why.
pub fn environment() -> Option<&'static str> {
    static ENVIRONMENT: OnceLock<Result<String, String>> = OnceLock::new();
    match ENVIRONMENT.get_or_init(installed) {
        Ok(place) => Some(place),
        Err(why) => {
            eprintln!("skipped: the frameworks of Python can't be installed: {why}");
            None
        }
    }
}

fn installed() -> Result<String, String> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let place = target.join("wsgi-frameworks").to_str().ok_or("the path is no text")?.to_owned();
    // Another program of tests may be about to do the same.
    let lock = File::create(format!("{place}.lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let done = format!("{place}/done");
    let is_there = std::fs::read_to_string(&done).is_ok_and(|text| text == PACKAGES.join(" "));
    let python = format!("{place}/bin/python3");
    // The interpreter that it was made with may have gone.
    if is_there && run(&python, &["-c", "import django, flask, pyramid"]).is_ok() {
        return Ok(place);
    }
    run("python3", &["-m", "venv", "--clear", &place])?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(&python, &[&install[..], &["--retries", "2", "--timeout", "20"], &PACKAGES].concat())?;
    std::fs::write(done, PACKAGES.join(" ")).map_err(|error| error.to_string())?;
    Ok(place)
}

/// Runs a program; an error is the last line that it has written.
fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("timeout").args(["600", program]).args(arguments).output();
    let output = output.map_err(|error| format!("timeout {program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(format!("{program} {}: {}: {last}", arguments.join(" "), output.status))
}

#[test]
fn django_flask_and_pyramid_run() {
    let Some(home) = environment() else { return };
    let mut site = Site::new("wsgi-frameworks");
    for (name, script) in [("django", DJANGO), ("flask", FLASK), ("pyramid", PYRAMID)] {
        site.write(&format!("{name}_app.wsgi"), script);
    }
    let aliases: String = ["django", "flask", "pyramid"]
        .map(|name| {
            format!(
                "WSGIScriptAlias /{name} {}/{name}_app.wsgi process-group=apps \
                 application-group={name}\n",
                site.root.display()
            )
        })
        .concat();
    site.configure(&format!(
        "LoadModule mpm_event_module modules/mod_mpm_event.so\n\
         LoadModule authz_core_module modules/mod_authz_core.so\n\
         LoadModule wsgi_module modules/mod_wsgi.so\n\
         WSGIDaemonProcess apps threads=5 python-home={home}\n{aliases}"
    ));
    site.start();

    let answer = site.get("/flask/x?a=1");
    assert_eq!(answer.text(), "flask x 1 None", "{}", site.error_log());
    assert_eq!(site.get("/pyramid/y").text(), "pyramid y /pyramid");

    let mut client = site.client();
    let first = client.get("/django/count").unwrap();
    assert_eq!(first.text(), "count 1 at /django/count", "{}", site.error_log());
    let cookie = first.field("Set-Cookie").unwrap().split(';').next().unwrap().to_owned();
    let head = format!("GET /django/count HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n\r\n");
    client.send(head.as_bytes()).unwrap();
    assert_eq!(client.answer().unwrap().text(), "count 2 at /django/count");

    let content = "x".repeat(300_000);
    let body = format!(
        "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n{content}\r\n\
         --b--\r\n"
    );
    let head = format!(
        "POST /django/upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\
         Content-Type: multipart/form-data; boundary=b\r\n\r\n",
        body.len()
    );
    client.send(head.as_bytes()).unwrap();
    client.send(body.as_bytes()).unwrap();
    assert_eq!(client.answer().unwrap().text(), "300000 bytes");

    let admin = site.get("/django/admin/");
    assert_eq!(admin.status, 302);
    assert!(admin.field("Location").unwrap().starts_with("/django/admin/login/"));
    assert!(site.get("/django/admin/login/").text().contains("csrfmiddlewaretoken"));
    assert_eq!(site.get("/django/none").status, 404);
}
