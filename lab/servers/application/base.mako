<!DOCTYPE html>
<html>
<head><title>${self.title()}</title></head>
<body>
<h1>${self.title()}</h1>
${self.body()}
</body>
</html>
