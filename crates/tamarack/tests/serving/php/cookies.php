<?php
setcookie('one', 'first value', 0, '/');
setcookie('two', '2', 0, '/');
header('WWW-Authenticate: Basic realm="PHP"');
http_response_code(401);
echo "cookies\n";
