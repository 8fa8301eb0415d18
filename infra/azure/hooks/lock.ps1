# dev.py needs WSL 2 on Windows. Without tools.lock.json the app starts all the same, only slower.
Write-Warning 'tools.lock.json was not made: run "python3 dev.py lock --tools" in WSL 2 before you deploy.'
