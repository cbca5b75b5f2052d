"""JMeter, the tool of study P5. Its plan is written for every run."""

from __future__ import annotations

import csv
import statistics
import tempfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

from ..errors import LabError
from ..histogram import Histogram
from .side import Side
from .tool import REQUEST_TIMEOUT_S, Count, Order, Tool, complaint, counted_over

HOME = "/usr/share/jmeter"
# Debian's XStream refuses JMeter's own classes unless they are allowed explicitly.
LAUNCHER = Path(__file__).parent.parent.parent / "load" / "JmeterLauncher.java"

PLAN = """\
<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2" properties="2.8" jmeter="2.13">
 <hashTree>
  <TestPlan guiclass="TestPlanGui" testclass="TestPlan" testname="lab" enabled="true">
   <elementProp name="TestPlan.user_defined_variables" elementType="Arguments">
    <collectionProp name="Arguments.arguments"/>
   </elementProp>
  </TestPlan>
  <hashTree>
   <ThreadGroup guiclass="ThreadGroupGui" testclass="ThreadGroup" testname="users" enabled="true">
    <stringProp name="ThreadGroup.on_sample_error">continue</stringProp>
    <elementProp name="ThreadGroup.main_controller" elementType="LoopController">
     <boolProp name="LoopController.continue_forever">false</boolProp>
     <stringProp name="LoopController.loops">{each}</stringProp>
    </elementProp>
    <stringProp name="ThreadGroup.num_threads">{users}</stringProp>
    <stringProp name="ThreadGroup.ramp_time">0</stringProp>
   </ThreadGroup>
   <hashTree>
    <HTTPSamplerProxy guiclass="HttpTestSampleGui" testclass="HTTPSamplerProxy" testname="page"
      enabled="true">
     <elementProp name="HTTPsampler.Arguments" elementType="Arguments">
      <collectionProp name="Arguments.arguments"/>
     </elementProp>
     <stringProp name="HTTPSampler.domain">{host}</stringProp>
     <stringProp name="HTTPSampler.port">{port}</stringProp>
     <stringProp name="HTTPSampler.protocol">{scheme}</stringProp>
     <stringProp name="HTTPSampler.path">{path}</stringProp>
     <stringProp name="HTTPSampler.method">GET</stringProp>
     <stringProp name="HTTPSampler.implementation">HttpClient4</stringProp>
     <stringProp name="HTTPSampler.response_timeout">{timeout_ms}</stringProp>
     <boolProp name="HTTPSampler.use_keepalive">{keep}</boolProp>
    </HTTPSamplerProxy>
    <hashTree/>
   </hashTree>
  </hashTree>
 </hashTree>
</jmeterTestPlan>
"""


class Jmeter(Tool):
    """Users with a number of requests each; the caller does the warm-up."""

    name = "jmeter"
    program = "jmeter"
    starts_at_once = False
    packages = ("jmeter", "jmeter-http", "default-jdk-headless")

    def missing(self, side: Side) -> str:
        """JMeter, its HTTP part, which is a separate package in Debian, and Java."""
        jars = f"{HOME}/lib/ext/ApacheJMeter_http.jar"
        if side.has("java") and side.has("jmeter") and side.first_line(["ls", jars]) == jars:
            return ""
        return super().missing(side) or (
            f"jmeter is incomplete{side.where()}: apt-get install {' '.join(self.packages)}")

    def version(self, side: Side) -> str:
        """The line with a number."""
        # Without -j it leaves a jmeter.log in the working directory.
        said = side.first_line([
            "sh", "-c", "jmeter -j /dev/null --version 2>&1 | grep -m1 -o 'ersion [0-9.]*'"])
        return f"JMeter v{said}" if said else "JMeter"

    def run_one(self, order: Order, side: Side) -> Count:
        """One test."""
        if not order.requests_each:
            raise LabError("jmeter needs requests_each")
        page = order.pages[0]
        text = PLAN.format(
            each=order.requests_each, users=order.clients, host=order.host, port=order.port,
            scheme=order.scheme, path=quoteattr(page.path)[1:-1],
            timeout_ms=REQUEST_TIMEOUT_S * 1000, keep=str(order.keep_alive).lower())
        with tempfile.NamedTemporaryFile("w", prefix="lab-", suffix=".jmx") as plan:
            plan.write(text)
            plan.flush()
            table, log = side.scratch("jmeter.csv"), side.scratch("jmeter.log")
            side.run(["java", f"-Djmeter.home={HOME}", "-cp", f"{HOME}/bin/ApacheJMeter.jar",
                      side.put(LAUNCHER), "-n", "-t", side.put(Path(plan.name)), "-l", table,
                      "-j", log,
                      "-Jjmeter.save.saveservice.output_format=csv",
                      "-Jjmeter.save.saveservice.print_field_names=true",
                      "-Jjmeter.save.saveservice.bytes=true", "-Jsummariser.name="],
                     10 * REQUEST_TIMEOUT_S)
        side.take(log)
        return count(side.take(table), order)


def count(table: str, order: Order) -> Count:
    """JMeter's CSV: timeStamp and elapsed are milliseconds."""
    rows = list(csv.DictReader(table.splitlines()))
    if not rows or "elapsed" not in rows[0]:
        raise LabError("jmeter wrote no figures")
    began = min(int(row["timeStamp"]) for row in rows)
    good = [row for row in rows if row["responseCode"] == "200" and row["success"] == "true"]
    kept, line = Histogram(), []
    least = order.pages[0].length
    wrong = 0
    for row in good:
        kept.record(int(row["elapsed"]) * 1000)
        line.append((float(int(row["timeStamp"]) - began), float(row["elapsed"])))
        wrong += int(least > 0 and int(row.get("bytes") or least) < least)
    ended = max(int(row["timeStamp"]) + int(row["elapsed"]) for row in rows)
    counted = {"status or connection": len(rows) - len(good)}
    took = [point[1] * 1000 for point in line]
    return Count(len(good), max(0.001, (ended - began) / 1000), sum(counted.values()), wrong,
                 complaint(counted), None, kept, statistics.pstdev(took) if took else None,
                 over=counted_over(took), timeline_ms=sorted(line) or None)
