"""Built sites: folders of HTML and Markdown pages."""
