"""Code shared by judgekit's and plug-ins' commands: options, printing, progress."""
