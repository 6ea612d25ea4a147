/*
 * picture.mjs FILE.png
 *		A screenshot of the upper part of docs/filter.html, for README.md.
 *
 *	npm ci && node picture.mjs ../../docs/filter.png && pngquant --force --ext .png --strip ../../docs/filter.png
 */
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage({ viewport: { width: 900, height: 1600 }, deviceScaleFactor: 1.25 });

await page.goto(`file://${fileURLToPath(new URL('../../docs/filter.html', import.meta.url))}#n=5000000&fpp=0.005&key=uuid`);
await page.waitForSelector('#chart path');
const { y, height } = await page.locator('#chart').boundingBox();
await page.screenshot({ path: process.argv[2], clip: { x: 0, y: 0, width: 900, height: Math.round(y + height + 12) } });
await browser.close();
