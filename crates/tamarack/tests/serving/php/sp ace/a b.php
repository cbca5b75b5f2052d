<?php
header('Content-Type: text/plain');
$own = $_SERVER;
foreach (['REQUEST_TIME', 'REQUEST_TIME_FLOAT', 'REMOTE_PORT', 'SERVER_SOFTWARE', 'HOME', 'USER', 'PATH'] as $name) {
    unset($own[$name]);
}
ksort($own);
foreach ($own as $name => $value) {
    echo $name, '=', is_array($value) ? json_encode($value) : $value, "\n";
}
