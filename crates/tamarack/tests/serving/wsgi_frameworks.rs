//! mod_wsgi with the real frameworks, in a virtual environment below the target directory.

use std::path::{Path, PathBuf};
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

/// The virtual environment, which is made once.
fn environment() -> &'static Path {
    static ENVIRONMENT: OnceLock<PathBuf> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wsgi-frameworks");
        let done = place.join("done");
        if !done.exists() {
            let run = |program: &Path, arguments: &[&str]| {
                let status = Command::new(program).args(arguments).status().unwrap();
                assert!(status.success(), "{} {arguments:?}", program.display());
            };
            run(Path::new("python3"), &["-m", "venv", "--clear", place.to_str().unwrap()]);
            run(
                &place.join("bin/pip"),
                &["install", "-q", "django~=5.2", "flask~=3.1", "pyramid~=2.0"],
            );
            std::fs::write(done, "").unwrap();
        }
        place
    })
}

#[test]
#[ignore = "installs packages from PyPI"]
fn django_flask_and_pyramid_run() {
    let home = environment().display();
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
