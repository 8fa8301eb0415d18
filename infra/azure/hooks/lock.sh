#!/bin/sh
# Writes down what every tool declares, so that a start on Azure imports no tool. See docs/deploy.md, "The package".
set -eu
cd "$(dirname "$0")/../../.."
python3 dev.py lock --tools
