<?php
header('Location: /hello.php?from=redirect');
