"""The page of the cores study: a Pyramid route, a view that reads the time, Mako templates.

Pyramid descends from Pylons, which the study used: a route, a controller that calls
time.localtime(time.time()), a template inside a base template.
"""

import os
import time

from mako.lookup import TemplateLookup
from pyramid.config import Configurator
from pyramid.response import Response

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


def application(environ, start_response):
    """A page without any framework, which shows what the server costs, and Pyramid's."""
    if environ["PATH_INFO"] == "/hello":
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "6")])
        return [b"hello\n"]
    return PYRAMID(environ, start_response)
