//! A site of Django, used in a browser as by its visitors and its keeper: sessions, an upload,
//! static files that the server sends, and the admin.

use std::process::Command;

use serde_json::json;

use crate::browser::{Browser, Page};
use crate::metrics;
use crate::site::Site;
use crate::wsgi_frameworks::environment;

const SETTINGS: &str = "
from pathlib import Path
BASE = Path(__file__).resolve().parent.parent
SECRET_KEY = 'x' * 50
ALLOWED_HOSTS = ['localhost']
ROOT_URLCONF = 'shop.urls'
INSTALLED_APPS = ['django.contrib.' + name for name in (
    'admin', 'auth', 'contenttypes', 'sessions', 'messages', 'staticfiles')] + ['shop']
MIDDLEWARE = ['django.' + name for name in (
    'middleware.security.SecurityMiddleware',
    'contrib.sessions.middleware.SessionMiddleware',
    'middleware.common.CommonMiddleware',
    'middleware.csrf.CsrfViewMiddleware',
    'contrib.auth.middleware.AuthenticationMiddleware',
    'contrib.messages.middleware.MessageMiddleware',
    'middleware.clickjacking.XFrameOptionsMiddleware')]
TEMPLATES = [{'BACKEND': 'django.template.backends.django.DjangoTemplates', 'APP_DIRS': True,
    'OPTIONS': {'context_processors': [
        'django.template.context_processors.request',
        'django.contrib.auth.context_processors.auth',
        'django.contrib.messages.context_processors.messages']}}]
DATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': BASE / 'data/db.sqlite3',
    'OPTIONS': {'timeout': 60}}}
DEFAULT_AUTO_FIELD = 'django.db.models.BigAutoField'
PASSWORD_HASHERS = ['django.contrib.auth.hashers.MD5PasswordHasher']
STATIC_URL, STATIC_ROOT = '/static/', BASE / 'static'
MEDIA_URL, MEDIA_ROOT = '/media/', BASE / 'media'
";

const MODELS: &str = "
from django.db import models

class Ware(models.Model):
    name = models.CharField(max_length=100)
    picture = models.FileField()

    def __str__(self):
        return self.name
";

const URLS: &str = r#"
from django.contrib import admin
from django.http import HttpResponse
from django.shortcuts import redirect
from django.template import engines
from django.urls import path
from .models import Ware

admin.site.register(Ware)
PAGE = engines['django'].from_string('''<!DOCTYPE html><html lang="en"><head><title>Shop</title>
<link rel="stylesheet" href="/static/shop/style.css"></head><body>
<p>You were here <b id="count">{{ count }}</b> times. <a id="again" href="/">Again</a></p>
{% for ware in wares %}<figure><img src="{{ ware.picture.url }}" alt="">
<figcaption>{{ ware.name }}, {{ ware.picture.size }} bytes</figcaption></figure>{% endfor %}
<form method="post" enctype="multipart/form-data">{% csrf_token %}<input name="name">
<input type="file" name="picture"><button>Send</button></form></body></html>''')

def home(request):
    if request.method == 'POST':
        Ware.objects.create(name=request.POST['name'], picture=request.FILES['picture'])
        return redirect('/')
    count = request.session['count'] = request.session.get('count', 0) + 1
    return HttpResponse(PAGE.render({'count': count, 'wares': Ware.objects.all()}, request))

urlpatterns = [path('', home), path('admin/', admin.site.urls)]
"#;

const SCRIPT: &str = "
import os
os.environ['DJANGO_SETTINGS_MODULE'] = 'shop.settings'
from django.core.wsgi import get_wsgi_application
application = get_wsgi_application()
";

/// What `manage.py migrate`, `collectstatic` and `createsuperuser` do.
const PREPARATION: &str = "
import shop.wsgi
from django.contrib.auth.models import User
from django.core.management import call_command
call_command('migrate', run_syncdb=True, verbosity=0)
call_command('collectstatic', interactive=False, verbosity=0)
User.objects.create_superuser('keeper', 'keeper@localhost', 'right')
";

/// The site, with its files, database and keeper.
fn shop(home: &str) -> Site {
    let site = Site::new("wsgi-browser");
    for folder in ["shop/static/shop", "data", "media"] {
        std::fs::create_dir_all(site.path(folder)).unwrap();
    }
    site.write("shop/__init__.py", "");
    site.write("shop/settings.py", SETTINGS);
    site.write("shop/models.py", MODELS);
    site.write("shop/urls.py", URLS);
    site.write("shop/wsgi.py", SCRIPT);
    site.write("icon.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>");
    site.write("shop/static/shop/style.css", "body { background: rgb(1, 2, 3); color: white }\n");
    let prepared = Command::new(format!("{home}/bin/python3"))
        .args(["-c", PREPARATION])
        .current_dir(&site.root)
        .output()
        .unwrap();
    assert!(prepared.status.success(), "{}", String::from_utf8_lossy(&prepared.stderr));
    let root = site.root.display();
    site.configure(&format!(
        "LoadModule mpm_event_module modules/mod_mpm_event.so\n\
         LoadModule authz_core_module modules/mod_authz_core.so\n\
         LoadModule alias_module modules/mod_alias.so\n\
         LoadModule mime_module modules/mod_mime.so\n\
         LoadModule wsgi_module modules/mod_wsgi.so\n\
         TypesConfig /dev/null\n\
         AddType text/css .css\nAddType text/javascript .js\nAddType image/svg+xml .svg\n\
         WSGIDaemonProcess shop python-home={home} python-path={root} processes=2 threads=5\n\
         WSGIScriptAlias / {root}/shop/wsgi.py process-group=shop application-group=%{{GLOBAL}}\n\
         Alias /static/ {root}/static/\nAlias /media/ {root}/media/\n\
         Alias /favicon.ico {root}/icon.svg\n"
    ));
    site
}

#[test]
fn django_is_used_in_a_browser() {
    let Some(program) = metrics::browser() else {
        eprintln!("skipped: Django is not tried in a browser, because chromium is not installed");
        return;
    };
    let Some(home) = environment() else { return };
    let mut site = shop(home);
    site.start();
    let mut browser = Browser::start(&program, &site.path("browser"));
    let address = format!("http://localhost:{}", site.port);
    visit(&site, &mut browser, &address);
    administer(&site, &mut browser, &address);
    let troubles = browser.troubles();
    assert!(troubles.is_empty(), "{troubles:#?}\n{}", site.error_log());
    // The server has sent the static files, not Django, which would have refused.
    let style = site.get("/static/admin/css/base.css");
    assert!(style.status == 200 && style.field("ETag").is_some(), "{}", style.head);
    assert_eq!(site.count_lines("Traceback"), 0, "{}", site.error_log());
}

/// What visitors do: they come back, and send a picture that Django writes to a file as it comes.
fn visit(site: &Site, browser: &mut Browser, address: &str) {
    browser.go(address);
    browser.wait("document.querySelector('#count').textContent === '1'");
    let background = browser.value("getComputedStyle(document.body).backgroundColor");
    assert_eq!(background, "rgb(1, 2, 3)");
    browser.click("#again");
    browser.wait("document.querySelector('#count').textContent === '2'");

    let comment = "x".repeat(3_000_000);
    let picture = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='30'><!--{comment}--></svg>"
    );
    site.write("tree.svg", &picture);
    browser.enter("input[name=name]", "Lärche");
    browser.choose("input[name=picture]", &site.path("tree.svg"));
    browser.click("form button");
    browser.wait("document.querySelector('#count').textContent === '3'");
    let shown = browser.value("document.querySelector('figcaption').textContent");
    assert_eq!(shown, format!("Lärche, {} bytes", picture.len()));
    assert_eq!(browser.value("document.querySelector('img').naturalWidth"), 40);
    assert_eq!(std::fs::read_to_string(site.path("media/tree.svg")).unwrap(), picture);
}

/// What the keeper does: logs in at the second attempt, adds an object with a file, logs out.
fn administer(site: &Site, browser: &mut Browser, address: &str) {
    browser.go(&format!("{address}/admin/"));
    browser.wait("location.pathname === '/admin/login/'");
    for (password, condition) in [
        ("wrong", "document.querySelector('.errornote')"),
        ("right", "location.pathname === '/admin/' && document.querySelector('#user-tools')"),
    ] {
        browser.value("document.querySelector('#id_username').value = ''");
        browser.enter("#id_username", "keeper");
        browser.enter("#id_password", password);
        browser.click("input[type=submit]");
        browser.wait(condition);
    }
    // All style sheets are in force.
    let styled = "[...document.styleSheets].map(sheet => sheet.cssRules.length > 0)";
    let styled = browser.value(styled);
    assert!(styled.as_array().is_some_and(|all| all.len() > 2), "{styled}");
    assert!(styled.as_array().unwrap().iter().all(|has| *has == json!(true)), "{styled}");
    let header = "getComputedStyle(document.querySelector('#header')).backgroundColor";
    assert_eq!(browser.value(header), "rgb(65, 118, 144)");

    browser.click("tr.model-ware a.addlink");
    browser.wait("location.pathname === '/admin/shop/ware/add/'");
    browser.enter("#id_name", "Spruce & pine");
    browser.choose("#id_picture", &site.path("tree.svg"));
    browser.click("input[name=_save]");
    browser.wait("document.querySelector('li.success')");
    let names = "[...document.querySelectorAll('th.field-__str__')].map(one => one.textContent)";
    assert_eq!(browser.value(names), json!(["Spruce & pine", "Lärche"]));

    browser.click("#logout-form button");
    browser.wait("location.pathname === '/admin/logout/'");
    browser.go(&format!("{address}/admin/shop/ware/"));
    browser.wait("location.pathname === '/admin/login/'");
    browser.go(address);
    assert_eq!(browser.value("document.querySelectorAll('figure').length"), 2);
}
