# The life of the process: threads, time limits, and its end.

import math
import signal


class _Seat:
    """A thread's place: when it took its request, and what it has. The extension has its own."""

    def __init__(self):
        self._began = self._busy = 0.0
        self._environ = self._data = None
        self._count = 0

    def take(self):
        self._began = time.monotonic()

    def begin(self):
        """Counts a request: how many the thread and the process have."""
        self._count += 1
        return self._count, _life.count()

    def uncount(self):
        self._count -= 1

    def count(self):
        return self._count

    def end(self):
        self._busy, self._began = self.busy(), 0.0

    def began(self):
        return self._began

    def busy(self):
        began = self._began
        return self._busy + (time.monotonic() - began if began else 0.0)

    def set_environ(self, environ):
        self._environ, self._data = environ, None

    def data(self):
        """What the application keeps for the current request; None if there is no request."""
        if self._environ is not None and self._data is None:
            self._data = {}
        return self._data


def _plain_most():
    """How many requests are begun before the worker's code, which looks whether they are enough,
    serves all others. Several threads may begin one at the same time."""
    maximum = _number('maximum-requests')
    return max(maximum - _THREADS, 0) if maximum else -1


class _Task:
    """What a thread does."""

    __slots__ = ('thread', 'ident', 'seat', 'log', 'poller', 'lock', 'is_running',
                 'is_timed_out')

    def __init__(self, thread):
        self.thread = thread
        self.ident = threading.get_ident()
        self.log = None
        self.seat = _Seat() if _ring is None else _ring.seat(
            thread, not (_SLOW or _number('interrupt-timeout')), _plain_most(), _make_kit,
            _give_other, _fail, _report_use, _Response, _event_callbacks)
        self.poller = select.poll()
        # Under it, it is decided whether the thread still runs a request, and may be interrupted.
        self.lock = threading.Lock()
        self.is_running = False
        self.is_timed_out = False

    def settle(self):
        """From now on the thread is not interrupted."""
        while True:
            try:
                with self.lock:
                    self.is_running = False
                    if self.is_timed_out:
                        # It must not reach the next request.
                        _interrupt(self, None)
                        self.is_timed_out = False
                return
            except RequestTimeout:
                # It came before it could be taken back.
                pass


class _Life:
    def __init__(self):
        self.started = time.time()
        self.began = time.monotonic()
        self.turn = threading.Lock()
        # Held where one thread of several is to do something.
        self.lock = threading.Lock()
        self.tasks = []
        self.is_draining = False
        self.is_retiring = False
        self.is_evicted = False
        self.startup_began = None
        self.last_activity = None
        self.signals = []
        self.wake, self.waker = os.pipe()
        self.used = 0
        self.poller = select.poll()
        self.poller.register(_queue.fileno(), select.POLLIN)
        self.poller.register(self.wake, select.POLLIN)
        self.notice, self.noticer = os.pipe()
        self.maximum = _number('maximum-requests')

    def count(self):
        """How many requests were begun."""
        if _ring is not None:
            return _ring.count()
        return sum(task.seat.count() for task in list(self.tasks))

    def active(self):
        """How many are in progress."""
        return sum(task.seat.began() > 0 for task in list(self.tasks))

    def busy_seconds(self):
        return sum(task.seat.busy() for task in list(self.tasks))

    def activity(self):
        """When an application did something last; None if none has."""
        last = self.last_activity
        return last if _ring is None else max(last or 0, _ring.activity()) or None

    def begin_startup(self):
        if self.startup_began is None:
            self.startup_began = time.monotonic()

    def end_startup(self):
        self.startup_began = math.inf

    def take(self, task):
        """Waits for a request that the extension does not serve; returns its connection, or None
        at the end."""
        if _ring is not None:
            return task.seat.serve()
        wire = self._take_socket(task)
        if wire is not None:
            now = time.monotonic()
            if now - self.used >= 1:
                self.used = now
                _report_use()
        return wire

    def _take_socket(self, task):
        with self.turn:
            while not self.is_draining:
                try:
                    _, rights, _, _ = _queue.recvmsg(1, _RIGHTS_BYTES, _FLAGS)
                except BlockingIOError:
                    self.poller.poll()
                    continue
                except InterruptedError:
                    continue
                except OSError:
                    return None
                if not rights:
                    # The server has gone.
                    return None
                task.seat.take()
                return _Wire(int.from_bytes(rights[0][2][:4], sys.byteorder))
        return None

    def is_busy(self):
        """Whether a request is in progress, once no thread takes another one."""
        if _ring is not None:
            return _ring.busy() > 0
        with self.turn:
            return self.active() > 0

    def done(self, task):
        task.seat.end()
        if self.maximum:
            with self.lock:
                if self.count() >= self.maximum and not self.is_retiring:
                    self.is_retiring = True
                    _report(b'R', 'Maximum requests reached')
        if _watches_lock:
            _watch_lock()
        if self.is_draining:
            self.notify()

    def notify(self):
        """Has the main thread look what is to be done."""
        try:
            os.write(self.noticer, b'.')
        except OSError:
            pass

    def drain(self, reason=None):
        """Takes no more requests."""
        if not self.is_draining:
            self.is_draining = True
            os.write(self.waker, b'.')
            if _ring is not None:
                _ring.drain()
            if reason:
                _report(b'D', reason)
            self.notify()


_FLAGS = _socket.MSG_DONTWAIT | _socket.MSG_CMSG_CLOEXEC
_SLOW = float(_settings.get('slow') or 0)
_life = _Life()
_set_error = None


def _touch():
    _life.last_activity = time.monotonic()


def _interrupt(task, error):
    """Raises an error in a thread, or takes it back."""
    global _set_error
    import ctypes
    if _set_error is None:
        _set_error = ctypes.pythonapi.PyThreadState_SetAsyncExc
    target = ctypes.py_object(error) if error is not None else None
    _set_error(ctypes.c_ulong(task.ident), target)


# Whether WSGIFreeThreading is on, and Python's lock not.
_watches_lock = bool(_settings.get('free'))


def _watch_lock():
    """Says once that threads run under Python's lock, although WSGIFreeThreading is on."""
    global _watches_lock
    if not hasattr(sys, '_is_gil_enabled') or 't' not in sys.abiflags:
        _watches_lock = False
        _write_log('WSGI0200: WSGIFreeThreading has no effect: %s, Python %d.%d, is no '
                   'free-threaded build.' % (sys.executable, *sys.version_info[:2]), b'4')
    elif sys._is_gil_enabled():
        _watches_lock = False
        _write_log('WSGI0200: WSGIFreeThreading has no effect any more: PYTHON_GIL, or a module '
                   'that is not made for it, has switched the lock of Python on.', b'4')


def _serve(wire, task):
    head = wire.head()
    if head is None or wire.is_closed(task.poller):
        # The client has left while the request waited.
        return
    started, counts = time.time(), task.seat.begin()
    if 'i' not in head[3]:
        _touch()
    task.log = log = _Log('<wsgi.errors>', wire)
    if _event_callbacks:
        _publish(_event_callbacks, 'request_started', thread_id=task.thread)
    try:
        task.is_running = True
        if head[0] == 'r':
            _respond(wire, head, log, task, started, counts)
        else:
            _answer(wire, head, log)
    except _Reload:
        _life.drain('Script changed')
        task.seat.uncount()
        wire.send([_RETRY])
    finally:
        task.settle()
        taken = time.monotonic() - task.seat.began()
        if _SLOW and taken >= _SLOW:
            uri = head[-1].get('REQUEST_URI', '') if head[0] == 'r' else ''
            line = 'mod_wsgi (pid=%d): Slow request: %s took %.3f seconds.'
            _Log('<wsgi.errors>', None, b'4')._line(line % (os.getpid(), uri, taken))
        log._finish()
        task.log = None
        task.seat.set_environ(None)
        if _event_callbacks:
            _publish(_event_callbacks, 'request_finished', thread_id=task.thread)


def _answer(wire, head, log):
    """Answers a question that is not about a response."""
    try:
        answer = _frame(b'A', _decide(wire, head, log))
    except _Reload:
        raise
    except BaseException as error:
        if not isinstance(error, _Undecided):
            _write_log("Exception occurred processing WSGI script '%s'." % head[1])
            _write_traceback()
        # As in mod_wsgi, access is denied if the script fails.
        refusal = _frame(b'A', b'no')
        answer = refusal if head[0] == 'a' else _frame(b'F', (500).to_bytes(2, 'little'))
    wire.send([answer])


def _make_kit(request, has_body):
    """What a request needs that the extension serves."""
    wire = _SlotWire(request)
    _local.task.log = log = _Log('<wsgi.errors>', wire)
    return wire, log, Input(wire, has_body)


def _give_other(wire, path, result, response):
    """Goes on with a response that the extension has begun."""
    _finished(wire, path, lambda: (result, response))


def _fail(wire, path, error):
    """The application has failed that the extension has called."""
    def again():
        nonlocal error
        try:
            raise error
        finally:
            # Its traceback has this frame, which must not keep it.
            error = None
    _finished(wire, path, again)


def _finished(wire, path, make):
    try:
        _make_response(wire, path, make)
    finally:
        _flush_log()
        wire.finish()


def _report_use():
    """Tells the companion that the process is used."""
    _report(b'U')


def _work(number):
    _local.task = task = _Task(number)
    _life.tasks.append(task)
    while True:
        wire = None
        try:
            wire = _life.take(task)
            if wire is None:
                break
            _serve(wire, task)
        except (OSError, RequestTimeout):
            # The client has left, or the end of the request was interrupted.
            pass
        except BaseException:
            _write_log('Exception occurred within the worker.')
            _write_traceback()
        finally:
            if wire is not None:
                wire.finish()
                _life.done(task)
    if _life.is_draining:
        _life.notify()


def _check_limits(now):
    """Looks at the time limits; returns whether the process goes on."""
    limit = _number('startup-timeout')
    began = _life.startup_began
    if limit and began is not None and now - began >= limit:
        _write_log("Application startup timer expired, stopping process '%s'." % _GROUP)
        return False
    limit = _number('inactivity-timeout')
    last = _life.activity()
    if limit and last is not None and now - last >= limit:
        _write_log("Daemon process idle inactivity timer expired, stopping process '%s'."
                   % _GROUP, b'6')
        return False
    limit = _number('restart-interval')
    if limit and now - _life.began >= limit and not _life.is_retiring:
        _life.is_retiring = True
        _report(b'R', 'Application restart timer expired')
    limit = _number('request-timeout')
    if limit:
        limit *= 1 + math.log(max(_THREADS, 1))
        grace = _number('interrupt-timeout')
        for task in _life.tasks:
            began = task.seat.began()
            taken = now - began
            if not began or taken < limit:
                continue
            if grace and not task.is_timed_out:
                with task.lock:
                    # It may be done by now, or with another request.
                    if task.is_running and task.seat.began() == began:
                        task.is_timed_out = True
                        _interrupt(task, RequestTimeout)
            elif not grace or taken >= limit + grace:
                _write_log("Daemon process request time limit exceeded, stopping process '%s'."
                           % _GROUP)
                return False
    return True


def _intercept_signals():
    """Ignores the signal handlers of applications, which would replace those of this worker."""
    original = signal.signal

    def intercepted(number, handler):
        import traceback
        _write_log('Callback registration for signal %d ignored.' % number, b'4')
        log = _current_log() or _process_log
        for line in ''.join(traceback.format_stack()).rstrip('\n').split('\n'):
            log._line(line)
        return signal.getsignal(number)

    signal.signal = intercepted
    return original


def _on_signal(number, _):
    _life.signals.append(number)
    _life.notify()


def _set_signals():
    for name in ('SIGTERM', 'SIGINT', 'SIGUSR1', 'SIGHUP', 'SIGUSR2', 'SIGXCPU'):
        signal.signal(getattr(signal, name), _on_signal)
    if _settings.get('signal'):
        _intercept_signals()


def _set_path():
    path = _settings.get('path')
    if not path:
        return
    import site
    before = list(sys.path)
    for folder in path.split(':'):
        if folder:
            site.addsitedir(folder)
    added = [folder for folder in sys.path if folder not in before]
    sys.path[:] = added + before


def _set_name():
    """Shows the name in the list of processes, in place of the arguments."""
    name = _settings.get('display-name')
    if not name:
        return
    try:
        with open('/proc/self/stat') as file:
            fields = file.read().rpartition(')')[2].split()
        start, end = int(fields[45]), int(fields[46])
        data = name.encode()[:end - start - 1]
        with open('/proc/self/mem', 'r+b', 0) as memory:
            memory.seek(start)
            memory.write(data + b'\0' * (end - start - len(data)))
    except (OSError, ValueError, IndexError):
        pass


def _prepare():
    if _settings.get('switch-interval'):
        sys.setswitchinterval(float(_settings['switch-interval']))
    if _settings.get('locale'):
        import locale
        try:
            locale.setlocale(locale.LC_ALL, '')
        except locale.Error:
            _write_log('Unsupported locale setting %s specified for daemon process group %s.'
                       % (_settings['locale'], _GROUP), b'4')
    size = _number('stack-size')
    if size:
        threading.stack_size(size)
    _set_path()
    _set_name()
    _make_modules()
    _set_signals()
    if _watches_lock:
        _watch_lock()


def _import_scripts():
    for path in _imports:
        try:
            _loaded(path, False)
        except BaseException:
            _write_traceback()


def _start_threads():
    for number in range(1, _THREADS + 1):
        threading.Thread(target=_work, args=(number,), daemon=True,
                         name='mod_wsgi-%d' % number).start()


def _handle_signals():
    while _life.signals:
        number = _life.signals.pop(0)
        if number in (signal.SIGHUP, signal.SIGUSR2):
            _publish(_signal_callbacks, signal.Signals(number).name)
        elif number in (signal.SIGUSR1, signal.SIGXCPU):
            if not _life.is_retiring:
                _life.is_retiring = True
                _life.is_evicted = number == signal.SIGUSR1
                _report(b'R', 'Graceful restart requested')
        else:
            _life.drain('Signal received')


def _set_bell(lane, rights):
    """A loop has come or gone."""
    bell = int.from_bytes(rights[0][2][:4], sys.byteorder) if rights else -1
    before = _ring.set_bell(lane, bell) if _ring is not None else bell
    if before >= 0:
        os.close(before)


def _main():
    _prepare()
    if _imports and _THREADS == 0:
        # A service script may never return.
        threading.Thread(target=_import_scripts, daemon=True).start()
    else:
        _import_scripts()
    _start_threads()
    _report(b'S')
    poller = select.poll()
    poller.register(_control.fileno(), select.POLLIN)
    poller.register(_life.notice, select.POLLIN)
    limits = ('startup-timeout', 'inactivity-timeout', 'restart-interval', 'request-timeout')
    has_limits = any(_number(name) for name in limits)
    deadline = None
    while True:
        for fd, _ in poller.poll(1000 if has_limits or deadline is not None else None):
            if fd == _life.notice:
                os.read(fd, 4096)
                continue
            message, rights, _, _ = _control.recvmsg(64, _RIGHTS_BYTES, _socket.MSG_CMSG_CLOEXEC)
            if message == b'P':
                _report(b'P')
            elif message[:1] == b'B':
                _set_bell(int.from_bytes(message[1:3], 'little'), rights)
            else:
                if not message:
                    # The companion has gone.
                    poller.unregister(fd)
                _life.drain()
                limit = _number('eviction-timeout') if _life.is_evicted else 0
                deadline = time.monotonic() + (limit or _number('graceful-timeout', 15))
        _handle_signals()
        now = time.monotonic()
        if not _life.is_draining and has_limits and not _check_limits(now):
            _life.drain('Time limit')
        if _life.is_draining:
            if deadline is None:
                deadline = now + _number('shutdown-timeout', 5)
            is_busy = _life.is_busy()
            if not is_busy or now >= deadline:
                return _end(is_busy)


def _end(is_forced):
    _publish(_event_callbacks, 'process_stopping', shutdown_reason='shutdown')
    _publish(_shutdown_callbacks, 'process_stopping', shutdown_reason='shutdown')
    if is_forced or not _settings.get('destroy'):
        os._exit(0)
    sys.exit(0)


_main()
