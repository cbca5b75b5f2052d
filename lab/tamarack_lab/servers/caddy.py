"""Caddy, a Go program; GOMAXPROCS is the number of its CPUs."""

from __future__ import annotations

from .base import Server, first_line, output_of

TEMPLATE = """\
{{
    admin off
    auto_https off
    default_sni localhost
    log {{
        output file {folder}/error.log
        level ERROR
    }}
    servers {{
        protocols h1
        timeouts {{
            idle 10m
        }}
    }}
}}
{scheme}://:{port} {{
    bind {address}
    root * {documents}
    {tls}
    {log}
    file_server
}}
"""


class Caddy(Server):
    """Debian's caddy."""

    name = "caddy"
    label = "Caddy"
    program = "caddy"
    packages = ("caddy",)
    features = frozenset({"tls", "log"})

    @classmethod
    def version(cls) -> str:
        """Of the installed package."""
        return f"caddy {first_line([cls.path() or cls.program, 'version'])}"

    @classmethod
    def flags(cls) -> str:
        """Go's version, and the build's settings."""
        lines = output_of([cls.path() or cls.program, "build-info"]).splitlines()
        words = [line.split("\t") for line in lines if line.startswith(("go\t", "build\t"))]
        return " ".join(word[1].strip() for word in words if len(word) > 1)

    def environment(self) -> dict[str, str]:
        """It keeps its files in the folder, and is limited to its CPUs."""
        return {"HOME": str(self.setup.folder), "XDG_DATA_HOME": str(self.setup.folder),
                "XDG_CONFIG_HOME": str(self.setup.folder),
                "GOMAXPROCS": str(len(self.setup.cpus))}

    def configure(self) -> list[str]:
        """Writes the Caddyfile."""
        setup, site, folder = self.setup, self.setup.site, self.setup.folder
        text = TEMPLATE.format(
            folder=folder, scheme=self.scheme, address=setup.address, port=setup.port,
            documents=site.documents,
            tls=f"tls {site.certificate} {site.key}" if setup.tls else "",
            log=f"log {{\n        output file {folder}/access.log\n    }}" if setup.log else "")
        (folder / "Caddyfile").write_text(text)
        return [self.path() or self.program, "run", "--adapter", "caddyfile", "--config",
                str(folder / "Caddyfile")]
