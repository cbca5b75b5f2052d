<?php echo ini_get("precision"), " ", ini_get("upload_max_filesize"), "\n";
