"""Strategic merge patch. JSON patch and merge patch are in `apimachinery`, server-side apply in `fieldownership`."""
