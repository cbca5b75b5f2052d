# A request: its input, the response, and the file wrapper.

import operator
import stat


class RequestTimeout(BaseException):
    """Raised in a request that takes longer than request-timeout."""


class Input:
    """wsgi.input: the body, which is asked for when it is read first."""

    # As in mod_wsgi, it has no other attributes.
    __slots__ = ('_wire', '_is_over', '_is_asked', '_buffer', '_at', '_failure', '_lock')

    def __init__(self, wire, has_body):
        self._wire = wire
        self._is_over = not has_body
        self._is_asked = False
        # The current piece, and how much of it was read.
        self._buffer = b''
        self._at = 0
        self._failure = None
        # Applications may read with several threads.
        self._lock = threading.Lock()

    def close(self):
        pass

    def _piece(self, most):
        """The next piece, at best with so many bytes; empty at the end."""
        if self._failure:
            raise OSError('Apache/mod_wsgi request data read error: '
                          'Input is already in error state.')
        if self._is_over:
            return b''
        try:
            if not self._is_asked:
                self._is_asked = True
                self._wire.send([_WANTED])
            piece = self._wire.piece(most)
        except OSError as error:
            self._failure = error
            raise OSError('Apache/mod_wsgi request data read error: %s.' % error) from None
        if piece is None:
            self._failure = True
            raise OSError('Apache/mod_wsgi request data read error: '
                          'Partial results are valid but processing is incomplete.')
        _touch()
        if not piece:
            self._is_over = True
        return piece

    def _rest(self):
        """What is left of the current piece."""
        buffer, at = self._buffer, self._at
        self._buffer, self._at = b'', 0
        return buffer[at:] if at else buffer

    def read(self, size=-1, /):
        with self._lock:
            return self._read(operator.index(size))

    def _read(self, size):
        rest = self._rest()
        pieces, count = [rest] if rest else [], len(rest)
        while size < 0 or count < size:
            piece = self._piece(_READ_BYTES if size < 0 else size - count)
            if not piece:
                break
            pieces.append(piece)
            count += len(piece)
        if 0 <= size < count:
            # The last piece goes on.
            self._buffer, self._at = pieces[-1], len(pieces[-1]) - (count - size)
            pieces[-1] = self._buffer[:self._at]
        return pieces[0] if len(pieces) == 1 else b''.join(pieces)

    def readline(self, size=-1, /):
        with self._lock:
            return self._readline(operator.index(size))

    def _readline(self, size):
        pieces, count = [], 0
        while count != size:
            if self._at == len(self._buffer):
                self._buffer, self._at = self._piece(0), 0
                if not self._buffer:
                    break
            at = self._at
            most = len(self._buffer)
            if size >= 0:
                most = min(most, at + size - count)
            line_end = self._buffer.find(b'\n', at, most) + 1
            self._at = line_end or most
            pieces.append(self._buffer[at:self._at])
            count += self._at - at
            if line_end:
                break
        return b''.join(pieces)

    def readlines(self, hint=-1, /):
        hint = operator.index(hint)
        lines, count = [], 0
        for line in self:
            lines.append(line)
            count += len(line)
            if 0 < hint <= count:
                break
        return lines

    def __iter__(self):
        return self

    def __next__(self):
        line = self.readline()
        if not line:
            raise StopIteration
        return line


Input.__module__ = 'mod_wsgi'


class FileWrapper:
    """wsgi.file_wrapper: a file that is sent without being read here, if possible."""

    def __init__(self, filelike, blksize=8192):
        self.filelike = filelike
        self.blksize = blksize
        if hasattr(filelike, 'close'):
            self.close = filelike.close

    def __iter__(self):
        return self

    def __next__(self):
        data = self.filelike.read(self.blksize)
        if data:
            return data
        raise StopIteration


FileWrapper.__module__ = RequestTimeout.__module__ = 'mod_wsgi'


class _Gone(Exception):
    """The client has left."""


def _is_text(text):
    return text.isprintable() or not any(c < ' ' or c == '\x7f' for c in text)


# Status lines and names of headers that are valid: applications have few of them.
_statuses = set()
_names = set()
_VALID_MAX = 1000


def _note(valid, text):
    if len(valid) < _VALID_MAX and len(text) < 100:
        valid.add(text)


def _checked_status(status):
    if type(status) is str and status in _statuses:
        return status
    if type(status) is not str:
        raise TypeError('expected unicode object for status line, value of type %.200s found'
                        % type(status).__name__)
    status.encode('latin-1')
    code = status[:3]
    if not status:
        raise ValueError('status code was not supplied')
    if len(code) != 3 or not (code.isascii() and code.isdigit()):
        raise ValueError('status code is not a 3 digit integer')
    if status[3:4] != ' ':
        raise ValueError('no space following status code')
    if not _is_text(status):
        raise ValueError('control character present in status line')
    _note(_statuses, status)
    return status


def _checked_length(value):
    """The number that strtol(3) takes all of the text for."""
    text = value.lstrip(' \t\n\v\f\r')
    digits = text[1:] if text[:1] in ('+', '-') else text
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 19
    if value and not is_number or text[:1] == '-' and digits.strip('0'):
        raise ValueError('invalid content length')
    return int(digits or 0)


def _checked_header(header):
    if type(header) is not tuple:
        raise TypeError('list of tuple values expected for headers, value of type %.200s found'
                        % type(header).__name__)
    if len(header) != 2:
        raise ValueError('tuple of length 2 expected for header, length is %d' % len(header))
    name, value = header
    if type(name) is not str or type(value) is not str:
        what, text = ('name', name) if not isinstance(name, str) else ('value', value)
        if not isinstance(text, str):
            raise TypeError('expected unicode object for header %s, value of type %.200s found'
                            % (what, type(text).__name__))
    if name not in _names:
        if not name:
            raise ValueError('header name is empty')
        if not _is_text(name):
            raise ValueError('control character present in header name')
        if ' ' in name or ':' in name or not name.isascii():
            raise ValueError('space character present in header name')
        _note(_names, name)
    if not value.isascii():
        value.encode('latin-1')
    if '\r' in value or '\n' in value or '\0' in value:
        raise ValueError('carriage return/line feed character present in header value')


class _Response:
    """What start_response and write() make."""

    __slots__ = ('wire', 'status', 'headers', 'is_sent', 'length', 'given', 'frames')

    def __init__(self, wire):
        self.wire = wire
        self.status = None
        self.headers = None
        self.is_sent = False
        self.length = None
        self.given = 0
        # The head, which waits for what follows: both come at once.
        self.frames = []

    def start(self, status, headers, exc_info=None, /):
        if type(headers) is not list:
            raise TypeError('start_response() argument 2 must be list, not '
                            + type(headers).__name__)
        if exc_info is not None and type(exc_info) is not tuple:
            raise RuntimeError('exception info must be a tuple')
        if self.is_sent:
            if exc_info is None:
                raise RuntimeError('headers have already been sent')
            try:
                raise exc_info[1].with_traceback(exc_info[2])
            finally:
                exc_info = None
        exc_info = None
        status = _checked_status(status)
        for header in headers:
            _checked_header(header)
        self.status, self.headers = status, list(headers)
        return self.write

    def head(self):
        """The frame of the head."""
        if self.status is None:
            raise RuntimeError('response has not been started')
        parts = [self.status]
        for name, value in self.headers:
            if len(name) == 14 and name.lower() == 'content-length':
                self.length = _checked_length(value)
                value = str(self.length)
            parts.append(name)
            parts.append(value)
        self.is_sent = True
        return _frame(b'H', '\0'.join(parts).encode('latin-1'))

    def output(self, data, is_last=False):
        """Sends a piece of the body, and the head before the first one."""
        if not self.is_sent:
            self.frames = [self.head()]
        size = len(data)
        if self.length is not None and self.given + size > self.length:
            size = self.length - self.given
            data = data[:size]
        self.given += size
        frames = []
        if size <= _DATA_BYTES:
            if size:
                frames += [b'D' + size.to_bytes(4, 'little'), data]
        else:
            view = memoryview(data)
            for start in range(0, size, _DATA_BYTES):
                piece = view[start:start + _DATA_BYTES]
                frames += [b'D' + len(piece).to_bytes(4, 'little'), piece]
        if is_last:
            frames.append(_END)
        if not frames:
            return
        if self.frames:
            frames, self.frames = self.frames + frames, []
        try:
            self.wire.send(frames)
        except OSError:
            raise _Gone from None
        _touch()

    def write(self, data, /):
        if not isinstance(data, bytes):
            raise TypeError('byte string value expected, value of type %.200s found'
                            % type(data).__name__)
        try:
            self.output(data)
        except _Gone:
            raise OSError('Apache/mod_wsgi client connection closed.') from None

    def send_file(self, wrapper):
        """Sends a regular file from its position on; false if it is none."""
        filelike = wrapper.filelike
        try:
            source = filelike.fileno()
            start = filelike.tell()
            found = os.fstat(source)
        except Exception:
            return False
        if not stat.S_ISREG(found.st_mode) or self.is_sent or self.status is None:
            return False
        size = max(found.st_size - start, 0)
        names = [name.lower() for name, _ in self.headers]
        if 'content-length' not in names:
            self.headers.append(('Content-Length', str(size)))
        if not size:
            self.frames = [self.head()]
            return True
        try:
            self.wire.send([self.head()])
            size = min(size, self.length)
            self.given = self.length
            while size:
                count = min(size, _DATA_BYTES)
                if not self.wire.send_file(source, start, count):
                    # The file has become shorter: the response can't be completed.
                    raise _Gone
                start, size = start + count, size - count
                _touch()
        except OSError:
            raise _Gone from None
        return True


def _close(result, path):
    """Ends what an application has returned. What goes wrong there is no part of the response."""
    close = getattr(result, 'close', None)
    if close is None:
        return
    try:
        close()
    except RequestTimeout:
        raise
    except BaseException:
        _write_log("Exception occurred processing WSGI script '%s'." % path)
        _write_traceback()


def _give(result, response, path):
    """Sends what an application has returned."""
    try:
        if type(result) is list and len(result) == 1 and type(result[0]) is bytes:
            # By far the most common case.
            _flush_log()
            response.output(result[0], True)
            return
        if not (isinstance(result, FileWrapper) and response.send_file(result)):
            for item in result:
                if not isinstance(item, bytes):
                    raise TypeError('sequence of byte string values expected, value of type '
                                    '%.200s found' % type(item).__name__)
                if item:
                    response.output(item)
            response.output(b'')
    except BaseException:
        _close(result, path)
        raise
    _close(result, path)
    # Lines for the log that come later would find no reader.
    _flush_log()
    response.output(b'', True)


def _flush_log():
    log = _current_log()
    if log is not None and log._rest:
        log.flush()
