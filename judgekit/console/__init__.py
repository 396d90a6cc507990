"""What commands share, judgekit's own and those of plug-ins: options, how they print, how progress is drawn."""
