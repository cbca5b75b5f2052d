# Scripts: they are loaded once, and again when they have changed.

import types

_modules = {}
_modules_lock = threading.Lock()


class _Script:
    """A script file, and the module that it has become."""

    def __init__(self, path):
        self.path = path
        self.encoded = os.fsencode(path)
        self.lock = threading.RLock()
        self.module = None
        self.changed = None

    def is_changed(self):
        """Whether the file is another one than was loaded."""
        if _ring is not None:
            return _ring.stat(self.encoded) != self.changed
        try:
            found = os.stat(self.path)
        except OSError:
            return True
        return self.changed != (found.st_mtime_ns, found.st_ino, found.st_size)

    def load(self):
        """Loads the module; raises what the script raises."""
        import hashlib
        name = '_mod_wsgi_' + hashlib.md5(os.fsencode(self.path)).hexdigest()
        with open(self.path, 'rb') as file:
            found = os.fstat(file.fileno())
            source = file.read()
        module = types.ModuleType(name)
        module.__file__ = self.path
        sys.modules[name] = module
        try:
            code = compile(source, self.path, 'exec', 0, True)
            exec(code, module.__dict__)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        self.changed = (found.st_mtime_ns, found.st_ino, found.st_size)
        self.module = module
        if _ring is not None:
            time_ns, *rest = self.changed
            # A time before 1970 is none that the loop sends.
            _ring.know(self.encoded, self.path, module.__dict__, max(time_ns, 0) // 1000, *rest)
        return module


def _script(path):
    script = _modules.get(path)
    if script is None:
        with _modules_lock:
            script = _modules.setdefault(path, _Script(path))
    return script


class _Reload(Exception):
    """The process has to be replaced by one that loads the script again."""


def _loaded(path, reloads, required=None):
    """The module of a script; None if it can't be loaded, which is logged."""
    script = _script(path)
    module = script.module
    if module is not None and not (reloads and _must_reload(script, required)):
        return module
    with script.lock:
        module = script.module
        if module is not None:
            if not (reloads and _must_reload(script, required)):
                return module
            if not _EMBEDDED:
                raise _Reload
            _write_log("Reloading WSGI script '%s'." % path, b'6')
            script.module = None
            if _ring is not None:
                _ring.forget(script.encoded)
        _life.begin_startup()
        try:
            module = script.load()
        except SystemExit:
            _write_log("SystemExit exception raised when doing exec of Python script file '%s'."
                       % path)
            return None
        except (OSError, SyntaxError) as error:
            if error.filename != path:
                _write_log("Failed to exec Python script file '%s'." % path)
            else:
                _write_log("Could not read/compile source file '%s'." % path)
            _write_log("Exception occurred processing WSGI script '%s'." % path)
            _write_traceback()
            return None
        except RequestTimeout:
            raise
        except BaseException:
            _write_log("Failed to exec Python script file '%s'." % path)
            _write_log("Exception occurred processing WSGI script '%s'." % path)
            _write_traceback()
            return None
        _life.end_startup()
        return module


def _must_reload(script, required):
    if script.is_changed():
        return True
    check = required and getattr(script.module, 'reload_required', None)
    if not check:
        return False
    try:
        return bool(check(required))
    except Exception:
        _write_log("Exception occurred processing WSGI script '%s'." % script.path)
        _write_traceback()
        return False


_SET_LATER = ('wsgi.errors', 'wsgi.input', 'mod_wsgi.script_reloading', 'mod_wsgi.enable_sendfile',
              'mod_wsgi.ignore_activity', 'mod_wsgi.request_start', 'mod_wsgi.queue_start',
              'mod_wsgi.daemon_start', 'mod_wsgi.application_start', 'mod_wsgi.thread_id',
              'mod_wsgi.thread_requests', 'mod_wsgi.total_requests')
_OF_APPLICATIONS = (*_SET_LATER, 'mod_wsgi.server_pid')
_CONSTANTS = {
    'wsgi.version': (1, 0),
    'wsgi.multithread': _THREADS > 1,
    'wsgi.multiprocess': bool(_settings.get('multiprocess')),
    'wsgi.run_once': _THREADS == 1 and _number('maximum-requests') == 1,
    'wsgi.input_terminated': True,
    'wsgi.file_wrapper': FileWrapper,
    'mod_wsgi.version': (6, 0, 5),
    'mod_wsgi.server_pid': str(os.getppid()),
    'apache.version': (2, 4, 71),
    # So that an environ has room for them.
    **dict.fromkeys(_SET_LATER),
}
if _ring is not None:
    _ring.set_constants(_CONSTANTS)


def _respond(wire, head, log, task, started, counts):
    """Serves a request."""
    _, script, callable_object, flags, _, handler_script, filename, received, environ = head
    path = script if script.isascii() else os.fsdecode(script.encode('latin-1'))
    resource = os.fsdecode(filename.encode('latin-1')) if handler_script else None
    reloads = 'r' in flags
    module = _loaded(path, reloads, resource)
    if module is None:
        wire.send([_frame(b'F', (500).to_bytes(2, 'little'))])
        return
    application = module.__dict__.get(callable_object)
    if application is None:
        _write_log("Target WSGI script '%s' does not contain WSGI application '%s'."
                   % (path, callable_object))
        wire.send([_frame(b'F', (404).to_bytes(2, 'little'))])
        return
    environ['wsgi.errors'] = log
    environ['wsgi.input'] = Input(wire, 'b' in flags)
    environ['mod_wsgi.script_reloading'] = '1' if reloads else '0'
    environ['mod_wsgi.enable_sendfile'] = '1' if 's' in flags else '0'
    environ['mod_wsgi.ignore_activity'] = '1' if 'i' in flags else '0'
    environ['mod_wsgi.request_start'] = environ['mod_wsgi.queue_start'] = received
    environ['mod_wsgi.daemon_start'] = started
    environ['mod_wsgi.application_start'] = time.time()
    environ['mod_wsgi.thread_id'] = task.thread
    environ['mod_wsgi.thread_requests'], environ['mod_wsgi.total_requests'] = counts
    task.seat.set_environ(environ)
    _make_response(wire, path, lambda: wire.run(application, environ, log))


def _make_response(wire, path, make):
    """Sends what an application makes, or that it has failed."""
    status = 500
    try:
        made = make()
        if made is None:
            _touch()
        else:
            _give(*made, path)
        return
    except _Gone:
        return _write_log('Client closed connection.', b'7')
    except _Reload:
        raise
    except SystemExit:
        _write_log("SystemExit exception raised by WSGI script '%s' ignored." % path)
    except RequestTimeout:
        status = 504
        _write_log("Request time limit exceeded in WSGI script '%s'." % path)
        _write_traceback()
    except BaseException:
        _write_log("Exception occurred processing WSGI script '%s'." % path)
        _write_traceback()
    # What comes after it finds no reader.
    _flush_log()
    wire.send([_frame(b'F', status.to_bytes(2, 'little'))])


def _bytes(text):
    """A name; a NUL ends it, as in C: what follows would be another one."""
    data = text if isinstance(text, bytes) else text.encode('utf-8')
    return data.partition(b'\0')[0]


class _Undecided(Exception):
    """A script can't decide anything, which has been logged."""


_NO_VALIDATOR = "Target WSGI host access script 'SCRIPT' does not provide host validator."
_NO_PASSWORDS = ("Target WSGI user authentication script 'SCRIPT' does not provide '%s' auth "
                 "provider.")
_NO_GROUPS = "Target WSGI group authentication script 'SCRIPT' does not provide group provider."


def _decide(wire, head, log):
    """Answers a question of access control or dispatching."""
    kind, script, _, flags, _, one, two, _, environ = head
    path = script if script.isascii() else os.fsdecode(script.encode('latin-1'))
    module = _loaded(path, 'r' in flags)
    if module is None:
        raise _Undecided
    for name in _OF_APPLICATIONS:
        del environ[name]
    environ['wsgi.errors'] = log
    environ['wsgi.input'] = Input(wire, False)
    one, two = (text.encode('latin-1').decode('utf-8', 'surrogateescape') for text in (one, two))
    if kind == 's':
        return _dispatch(module, environ)
    name, arguments, missing = {
        'a': ('allow_access', (environ, one), _NO_VALIDATOR),
        'p': ('check_password', (environ, one, two), _NO_PASSWORDS % 'Basic'),
        'd': ('get_realm_hash', (environ, one, two), _NO_PASSWORDS % 'Digest'),
        'g': ('groups_for_user', (environ, one), _NO_GROUPS),
    }[kind]
    function = getattr(module, name, None)
    if function is None:
        _write_log(missing.replace('SCRIPT', path))
        raise _Undecided
    result = function(*arguments)
    if kind == 'g':
        return b'\0'.join(map(_bytes, result or ()))
    if result is None:
        return b'none'
    if kind == 'p' and isinstance(result, str) or kind == 'd' and isinstance(result, (str, bytes)):
        return b'=' + _bytes(result)
    if isinstance(result, bool):
        return b'yes' if result else b'no'
    _write_log("Indicator returned from '%s' must be a boolean or None." % path)
    raise TypeError(name)


def _dispatch(module, environ):
    parts = []
    for name in ('process_group', 'application_group', 'callable_object'):
        function = getattr(module, name, None)
        found = function(environ) if function is not None else None
        parts.append(b'' if found is None else b'=' + _bytes(found))
    return b'\0'.join(parts)
