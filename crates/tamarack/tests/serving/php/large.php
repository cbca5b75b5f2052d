<?php
header('Content-Type: text/plain');
for ($line = 0; $line < 40000; $line++) {
    printf("line %06d of a long response that is flushed now and then\n", $line);
    if ($line % 5000 === 0) {
        flush();
    }
}
