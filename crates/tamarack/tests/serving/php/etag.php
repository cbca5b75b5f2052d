<?php
header('ETag: "tag"');
header('Last-Modified: Sat, 01 Jan 2022 00:00:00 GMT');
echo "tagged\n";
