"""The page of the cores study: a Pyramid route, a view that reads the time, Mako templates.

Pyramid descends from Pylons, which the study used: a route, a controller that calls
time.localtime(time.time()), a template inside a base template.
"""

import os
import time

from mako.lookup import TemplateLookup
from pyramid.config import Configurator
from pyramid.response import Response

# As in the lab's site.py.
LARGE = b"tamarack" * 1_250_000
BLOCK_BYTES = 65_536
TEMPLATES = TemplateLookup(directories=[os.path.dirname(os.path.abspath(__file__))],
                           filesystem_checks=False)


def show_time(request):
    """The view."""
    template = TEMPLATES.get_template("time.mako")
    return Response(template.render(now=time.localtime(time.time())))


def make():
    """The WSGI application."""
    with Configurator() as config:
        config.add_route("time", "/time")
        config.add_view(show_time, route_name="time")
        return config.make_wsgi_app()


PYRAMID = make()


def hello(environ):
    """The smallest response."""
    return b"hello\n"


def respond(environ):
    """A large one."""
    return LARGE


def upload(environ):
    """Reads the request's body to its end, and says how long it was."""
    length = 0
    while block := environ["wsgi.input"].read(BLOCK_BYTES):
        length += len(block)
    return b"%d\n" % length


# Pages without any framework, which show what the server costs.
PLAIN = {"/hello": hello, "/response": respond, "/upload": upload}


def application(environ, start_response):
    """Those, and Pyramid's."""
    page = PLAIN.get(environ["PATH_INFO"])
    if page is None:
        return PYRAMID(environ, start_response)
    body = page(environ)
    start_response("200 OK", [("Content-Type", "text/plain"),
                              ("Content-Length", str(len(body)))])
    return [body]
