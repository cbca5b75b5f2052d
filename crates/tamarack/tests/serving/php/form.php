<?php
header('Content-Type: text/plain');
$input = file_get_contents('php://input');
var_export([$_SERVER['REQUEST_METHOD'], $_GET, $_POST, $_COOKIE, strlen($input), md5($input)]);
