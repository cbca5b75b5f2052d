# Lines for the error log.

import io

# Its task is what the thread does, if it serves requests.
_local = threading.local()
# A destructor may write while its thread writes.
_log_lock = threading.RLock()


def _current_log():
    """The log of the thread's request; None if there is none."""
    task = getattr(_local, 'task', None)
    return None if task is None else task.log


class _Output(io.TextIOBase):
    """A text file without a descriptor, which stays open."""

    # What else an application sets is in its dictionary.
    __slots__ = ('_name',)

    def __init__(self, name):
        self._name = name

    @property
    def name(self):
        return self._name

    @property
    def encoding(self):
        return 'utf-8'

    @property
    def errors(self):
        return 'backslashreplace'

    @property
    def line_buffering(self):
        return True

    @property
    def write_through(self):
        return True

    @property
    def buffer(self):
        return _Bytes(self)

    def reconfigure(self, **_):
        pass

    def writable(self):
        return True

    def fileno(self):
        raise OSError('Apache/mod_wsgi log object is not associated with a file descriptor.')

    def close(self):
        raise RuntimeError('log object cannot be closed')

    def __del__(self):
        pass


class _Bytes(io.BufferedIOBase):
    """The same text file for bytes."""

    def __init__(self, text):
        self._text = text

    def writable(self):
        return True

    def write(self, data):
        self._text.write(bytes(data).decode('utf-8', 'backslashreplace'))
        return len(data)

    def flush(self):
        self._text.flush()

    def close(self):
        pass


class _Log(_Output):
    """A text file whose lines go to the error log, as those of a request or of the process."""

    __slots__ = ('_wire', '_level', '_rest')

    def __init__(self, name, wire=None, level=b'3'):
        self._name = name
        self._wire = wire
        self._level = level
        self._rest = ''

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError('write() argument must be str, not ' + type(text).__name__)
        with _log_lock:
            rest, self._rest = self._rest, ''
            lines = (rest + text).split('\n')
            last = lines.pop()
            # A destructor may have written meanwhile.
            self._rest = last + self._rest
            if len(self._rest) > _LOG_BYTES:
                lines.append(self._rest)
                self._rest = ''
        for line in lines:
            self._line(line)
        return len(text)

    def flush(self):
        with _log_lock:
            line, self._rest = self._rest, ''
        if line:
            self._line(line)

    def _finish(self):
        """Ends a request's log: what is written later belongs to the process."""
        self.flush()
        self._wire = None

    def _line(self, line):
        data = line.encode('utf-8', 'backslashreplace').replace(b'\0', b'\\0')
        for start in range(0, max(len(data), 1), _LOG_BYTES):
            self._send(data[start:start + _LOG_BYTES])

    def _send(self, data):
        wire = self._wire
        if wire is not None:
            try:
                wire.send([_frame(b'L', self._level + data)])
                return
            except OSError:
                pass
        # The companion takes messages of some length only.
        for start in range(0, max(len(data), 1), 8000):
            try:
                _control.send(b'L' + self._level + data[start:start + 8000])
            except OSError:
                pass


class _Current(_Output):
    """sys.stdout or sys.stderr: the log of the thread's request, if there is one."""

    def __init__(self, name):
        super().__init__(name)
        self._own = _Log(name)

    def _target(self):
        return _current_log() or self._own

    def write(self, text):
        return self._target().write(text)

    def flush(self):
        self._target().flush()


class _Restricted:
    """A standard file that applications must not use."""

    def __init__(self, name):
        self.__dict__['_name'] = name

    def __getattr__(self, name):
        raise OSError('%s access restricted by mod_wsgi' % self._name)


_process_log = _Log('<wsgi.errors>')


def _write_log(text, level=b'3'):
    """Logs a message of mod_wsgi."""
    log = _current_log()
    line = 'mod_wsgi (pid=%d): %s' % (os.getpid(), text)
    target = _Log('<wsgi.errors>', log._wire if log is not None else None, level)
    target._line(line)


def _write_traceback(level=b'3'):
    """Logs the exception that is being handled."""
    import traceback
    kind, error, trace = sys.exc_info()
    # The frames of this worker are of no interest.
    while trace is not None and trace.tb_frame.f_code.co_filename == '<mod_wsgi>':
        trace = trace.tb_next
    log = _current_log() or _process_log
    try:
        lines = traceback.format_exception(kind, error, trace)
    except Exception:
        lines = ['%s' % kind.__name__]
    for line in ''.join(lines).rstrip('\n').split('\n'):
        log._line(line)


sys.stderr = sys.__stderr__ = _Current('<stderr>')
if _settings.get('stdout'):
    sys.stdout = sys.__stdout__ = _Restricted('sys.stdout')
else:
    sys.stdout = sys.__stdout__ = _Current('<stdout>')
if _settings.get('stdin'):
    sys.stdin = sys.__stdin__ = _Restricted('sys.stdin')
