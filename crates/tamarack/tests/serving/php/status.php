<?php
http_response_code(418);
header('X-Twice: 1');
header('X-Twice: 2', false);
echo "short and stout\n";
