<?php
$file = $_FILES['file'] ?? null;
var_export([$_POST, $file['name'] ?? null, $file['size'] ?? null, $file['error'] ?? null]);
echo "\n", $file && $file['error'] === 0 ? md5_file($file['tmp_name']) : 'nothing', "\n";
