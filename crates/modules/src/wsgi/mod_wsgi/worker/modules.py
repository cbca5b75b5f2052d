# The modules mod_wsgi and apache.

_event_callbacks = []
_shutdown_callbacks = []
_signal_callbacks = []


def _subscribe(callbacks):
    def subscribe(callback):
        if not callable(callback):
            raise TypeError('callback must be callable')
        callbacks.append(callback)
    return subscribe


def _publish(callbacks, name, **arguments):
    for callback in list(callbacks):
        try:
            callback(name, **arguments)
        except BaseException:
            _write_log('Exception occurred within event callback.')
            _write_traceback()


def _request_data():
    task = getattr(_local, 'task', None)
    data = None if task is None else task.seat.data()
    if data is None:
        raise RuntimeError('no active request for this thread')
    return data


def _process_metrics():
    import resource
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        'pid': os.getpid(),
        'request_count': _life.count(),
        'request_busy_time': _life.busy_seconds(),
        'active_requests': _life.active(),
        'memory_max_rss': used.ru_maxrss * 1024,
        'cpu_user_time': used.ru_utime,
        'cpu_system_time': used.ru_stime,
        'restart_time': _life.started,
        'current_time': time.time(),
        'running_time': int(time.time() - _life.started),
        'request_threads': _THREADS,
    }


def _request_metrics():
    return {
        'pid': os.getpid(),
        'request_count': _life.count(),
        'request_threads_maximum': _THREADS,
        'request_threads_active': _life.active(),
        'request_busy_time': _life.busy_seconds(),
    }


def _make_modules():
    module = types.ModuleType('mod_wsgi')
    module.__dict__.update({
        # The package of that name has modules of its own, such as mod_wsgi.express.
        '__path__': [folder for folder in (os.path.join(path, 'mod_wsgi') for path in sys.path)
                     if os.path.isdir(folder)],
        'version': (6, 0, 5),
        'process_group': _GROUP,
        'application_group': _APPLICATION,
        'maximum_processes': _number('processes', 1),
        'threads_per_process': _THREADS,
        'FileWrapper': FileWrapper,
        'Input': Input,
        'RequestTimeout': RequestTimeout,
        'subscribe_events': _subscribe(_event_callbacks),
        'subscribe_shutdown': _subscribe(_shutdown_callbacks),
        'subscribe_signals': _subscribe(_signal_callbacks),
        'event_callbacks': _event_callbacks,
        'shutdown_callbacks': _shutdown_callbacks,
        'request_data': _request_data,
        'active_requests': {},
        'process_metrics': _process_metrics,
        'request_metrics': _request_metrics,
        'start_recording_metrics': lambda: None,
        'server_metrics': lambda: None,
        '__getattr__': _late,
    })
    sys.modules['mod_wsgi'] = module
    apache = types.ModuleType('apache')
    apache.__dict__.update({
        'version': (2, 4, 71),
        'maximum_processes': _number('processes', 1),
        'threads_per_process': _THREADS,
        'description': _settings.get('software', ''),
        'mpm_name': _settings.get('mpm', ''),
        'build_date': '',
    })
    sys.modules['apache'] = apache


def _late(name):
    """What needs an import that most applications do without."""
    if name != 'LogHandler':
        raise AttributeError('module %r has no attribute %r' % ('mod_wsgi', name))
    import logging

    class LogHandler(logging.Handler):
        """Writes records to the error log, at their levels."""

        def emit(self, record):
            levels = ((50, b'2'), (40, b'3'), (30, b'4'), (20, b'6'), (0, b'7'))
            level = next(level for least, level in levels if record.levelno >= least)
            log = _current_log()
            target = _Log('<wsgi.errors>', log._wire if log is not None else None, level)
            for line in self.format(record).split('\n'):
                target._line(line)

    sys.modules['mod_wsgi'].LogHandler = LogHandler
    return LogHandler
