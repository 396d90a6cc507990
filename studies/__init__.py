"""What judgekit says of public data: one script for each study, and the page that they make."""
