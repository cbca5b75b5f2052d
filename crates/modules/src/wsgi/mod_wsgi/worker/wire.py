# The protocol between a worker and a loop of the server: crates/wire/src/wsgi.rs.

import _socket
import os
import select
import sys
import threading
import time

_settings = {}
_imports = []


def _read_settings(data):
    parts = data[8:8 + int(data[:8])].split(b'\0')
    for name, value in zip(parts[::2], parts[1::2]):
        if name == b'import':
            _imports.append(os.fsdecode(value))
        else:
            _settings[name.decode()] = value.decode('utf-8', 'surrogateescape')


def _number(name, default=0):
    return int(_settings.get(name) or default)


_read_settings(_)  # noqa: F821: what the loader has read
_THREADS = _number('threads')
_EMBEDDED = bool(_settings.get('embedded'))
_GROUP = _settings.get('group', '')
_APPLICATION = _settings.get('application', '')

_queue = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, int(sys.argv[2]))
_control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, int(sys.argv[3]))
os.close(int(sys.argv[1]))
os.set_inheritable(_queue.fileno(), False)
os.set_inheritable(_control.fileno(), False)
_region, *_extensions = map(int, sys.argv[4:]) if len(sys.argv) > 4 else (-1,)
sys.argv = ['mod_wsgi']

_DATA_BYTES = 1 << 20
_READ_BYTES = 1 << 16
_LOG_BYTES = (1 << 16) - 1
_PARTS_MAX = 512
# A client that takes nothing for so long has gone.
_SEND_TIMEOUT = _number('response-socket-timeout')
_FS_KEYS = ('DOCUMENT_ROOT', 'SCRIPT_FILENAME', 'CONTEXT_DOCUMENT_ROOT')
_RIGHTS_BYTES = _socket.CMSG_SPACE(4)
_END = b'E\0\0\0\0'
_RETRY = b'R\0\0\0\0'
_WANTED = b'G\0\0\0\0'


def _report(kind, text=''):
    """Tells the companion something; what does not fit its socket is lost."""
    try:
        _control.send(kind + text.encode('utf-8', 'replace')[:8192], _socket.MSG_DONTWAIT)
    except OSError:
        pass


def _frame(kind, content):
    return kind + len(content).to_bytes(4, 'little') + content


def _send(fd, parts):
    """Writes all of some pieces of bytes."""
    if len(parts) > _PARTS_MAX:
        for start in range(0, len(parts), _PARTS_MAX):
            _send(fd, parts[start:start + _PARTS_MAX])
        return
    written = os.writev(fd, parts)
    rest = b''.join(parts) if written < sum(map(len, parts)) else b''
    while written < len(rest):
        written += os.write(fd, memoryview(rest)[written:])


def _read_exactly(fd, buffer, count):
    """Returns at least `count` bytes, the first of which are in `buffer`; None at the end."""
    while len(buffer) < count:
        more = os.read(fd, max(_READ_BYTES, count - len(buffer)))
        if not more:
            return None
        buffer = buffer + more if buffer else more
    return buffer


class _Turn:
    """A lock which refuses the thread that has it: a destructor may write a line while its thread
    sends."""

    __slots__ = ('lock', '_is_taken')

    def __init__(self):
        self.lock = threading.RLock()
        self._is_taken = False

    def __enter__(self):
        self.lock.acquire()
        if self._is_taken:
            self.lock.release()
            raise OSError('the thread is in the middle of a frame')
        self._is_taken = True

    def __exit__(self, *_):
        self._is_taken = False
        self.lock.release()


class _Wire:
    """The socket of a request. Threads of the application may log while others respond."""

    __slots__ = ('fd', 'turn', 'rest')

    def __init__(self, fd):
        self.fd = fd
        self.rest = b''
        self.turn = _Turn()
        if _SEND_TIMEOUT:
            with _socket.socket(fileno=os.dup(fd)) as other:
                wait = _SEND_TIMEOUT.to_bytes(8, sys.byteorder) + bytes(8)
                other.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, wait)

    def head(self):
        """The eight texts of a request's head, and its environ; None if the client has gone."""
        data = _read_exactly(self.fd, b'', 4)
        if data is None:
            return None
        end = 4 + int.from_bytes(data[:4], 'little')
        data = _read_exactly(self.fd, data, end)
        if data is None:
            return None
        parts = data[4:end].decode('latin-1').split('\0')
        environ = dict(zip(parts[8::2], parts[9::2]))
        for key in _FS_KEYS:
            value = environ.get(key)
            if value is not None and not value.isascii():
                environ[key] = os.fsdecode(value.encode('latin-1'))
        environ['wsgi.url_scheme'] = 'https' if environ.pop('HTTPS', None) else 'http'
        environ.update(_CONSTANTS)
        return (*parts[:7], int(parts[7]) / 1000000, environ)

    def send(self, parts):
        with self.turn:
            if self.fd is None:
                raise OSError('the request is over')
            _send(self.fd, parts)

    def send_file(self, source, start, count):
        """Sends a frame with a part of a file; false if the file is shorter."""
        with self.turn:
            _send(self.fd, [b'D' + count.to_bytes(4, 'little')])
            while count:
                sent = os.sendfile(self.fd, source, start, count)
                if not sent:
                    return False
                start, count = start + sent, count - sent
        return True

    def read_exactly(self, buffer, count):
        if self.fd is None:
            raise OSError('The request is over')
        return _read_exactly(self.fd, buffer, count)

    def piece(self, most):
        """The next piece of the body: empty at its end, None if it is cut off.

        It may be longer than wanted.
        """
        data = self.read_exactly(self.rest, 4)
        size = int.from_bytes(data[:4], 'little') if data is not None else 0
        if size:
            data = self.read_exactly(data, 4 + size)
        if data is None:
            return None
        self.rest = data[4 + size:]
        return data[4:4 + size]

    def is_closed(self, poller):
        """Whether the client has left a request that waited."""
        poller.register(self.fd, 0)
        try:
            return bool(poller.poll(0))
        finally:
            poller.unregister(self.fd)

    def run(self, application, environ, log):
        """Runs an application; returns what it has returned, and the response."""
        response = _Response(self)
        return application(environ, response.start), response

    def finish(self):
        """Nothing is sent any more: the descriptor's number may become another request's."""
        with self.turn.lock:
            fd, self.fd = self.fd, None
        if fd is not None:
            os.close(fd)


class _SlotWire:
    """The same for a request in shared memory."""

    __slots__ = ('request', 'turn')

    def __init__(self, request):
        self.request = request
        self.turn = _Turn()

    def head(self):
        return self.request.head()

    def send(self, parts):
        with self.turn:
            self.request.send(b''.join(parts))

    def send_file(self, source, start, count):
        with self.turn:
            self.request.send(b'D' + count.to_bytes(4, 'little'))
            while count:
                data = os.pread(source, min(count, _READ_BYTES), start)
                if not data:
                    return False
                self.request.send(data)
                start, count = start + len(data), count - len(data)
        return True

    def piece(self, most):
        return self.request.piece(most)

    def is_closed(self, poller):
        return self.request.is_closed()

    def run(self, application, environ, log):
        """The same; None if the response is complete."""
        return self.request.respond(application, environ, log, _Response, self)

    def finish(self):
        with self.turn.lock:
            self.request.finish()


def _open_region():
    """The memory that this process shares with the loops; None without the extension."""
    if not _settings.get('region'):
        return None
    region = _region
    try:
        if sys.version_info < (3, 10) or sys.implementation.name != 'cpython':
            raise ImportError('it is made for CPython 3.10 and later')
        from importlib.machinery import ExtensionFileLoader, ModuleSpec
        import _imp
        kinds = dict(zip(_settings['extensions'].split(), _extensions))
        if 't' in sys.abiflags:
            # Some of these versions name it, but could not load it.
            kinds.pop('.abi3.so', None)
        own = [kinds[kind] for kind in _imp.extension_suffixes() if kind in kinds]
        if not own:
            if 't' in sys.abiflags:
                raise ImportError('for a free-threaded Python, from 3.14 on, it is built by '
                                  '"make/extension %s"' % sys.executable)
            raise ImportError('there is no file for Python %d.%d' % sys.version_info[:2])
        path = '/proc/self/fd/%d' % own[0]
        loader = ExtensionFileLoader('_tamarack_wsgi', path)
        spec = ModuleSpec('_tamarack_wsgi', loader, origin=path)
        module = _imp.create_dynamic(spec)
        _imp.exec_dynamic(module)
        numbers = map(int, _settings['region'].split())
        # From now on the ring owns the descriptor, even if its constructor fails.
        descriptor, region = region, None
        ring = module.Ring(descriptor, *numbers, _SEND_TIMEOUT)
    except Exception as error:
        _report(b'O', str(error))
        if region is not None:
            os.close(region)
        return None
    finally:
        for descriptor in _extensions:
            os.close(descriptor)
    _report(b'N')
    return ring


_ring = _open_region()
