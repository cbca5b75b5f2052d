<%inherit file="base.mako"/>
<%def name="title()">The time</%def>
<p>The time is ${now.tm_hour}:${"%02d" % now.tm_min}:${"%02d" % now.tm_sec}.</p>
