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
sys.argv = ['mod_wsgi']

_DATA_BYTES = 1 << 20
_READ_BYTES = 1 << 16
_LOG_BYTES = (1 << 16) - 1
_PARTS_MAX = 512
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


class _Wire:
    """The connection of a request. Threads of the application may log while others respond."""

    __slots__ = ('fd', 'lock')

    def __init__(self, fd):
        self.fd = fd
        self.lock = threading.Lock()

    def send(self, parts):
        with self.lock:
            if self.fd is None:
                raise OSError('the request is over')
            _send(self.fd, parts)

    def finish(self):
        """Nothing is sent any more: the descriptor's number may become another request's."""
        with self.lock:
            self.fd = None


def _read_exactly(fd, buffer, count):
    """Returns at least `count` bytes, the first of which are in `buffer`; None at the end."""
    while len(buffer) < count:
        more = os.read(fd, max(_READ_BYTES, count - len(buffer)))
        if not more:
            return None
        buffer = buffer + more if buffer else more
    return buffer


def _read_head(fd):
    """The parts of a request's head; None if the client has gone."""
    data = _read_exactly(fd, b'', 4)
    if data is None:
        return None
    end = 4 + int.from_bytes(data[:4], 'little')
    data = _read_exactly(fd, data, end)
    if data is None:
        return None
    return data[4:end].decode('latin-1').split('\0')


def _is_closed(fd, poller):
    """Whether the client has left a request that waited."""
    poller.register(fd, 0)
    try:
        return bool(poller.poll(0))
    finally:
        poller.unregister(fd)
