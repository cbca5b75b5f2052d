<?php echo "the folder: ", $_SERVER["SCRIPT_NAME"], "\n";
