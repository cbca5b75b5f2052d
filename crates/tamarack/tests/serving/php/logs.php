<?php
trigger_error('noted', E_USER_WARNING);
echo "logged\n";
