#!/bin/sh
# Makes dist/app.zip, which is what azd deploys. See docs/deploy.md, "The package".
set -eu
cd "$(dirname "$0")/../../.."
python3 dev.py package
